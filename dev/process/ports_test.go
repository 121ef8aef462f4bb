package process

import (
	"fmt"
	"net"
	"testing"
)

func TestCheckPortNamesATakenPort(t *testing.T) {
	l, err := net.Listen("tcp", Address(0))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port

	if err, want := CheckPort(port), fmt.Sprintf("port %d is taken by another program", port); err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

func TestFreePortsAreDifferentFreeAndReserved(t *testing.T) {
	ports, err := FreePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int]bool)
	for _, port := range ports {
		if seen[port] {
			t.Errorf("port %d was given twice", port)
		}
		seen[port] = true
		if port < lowestFree || port >= highestFree {
			t.Errorf("port %d is outside the range", port)
		}
		if err := CheckPort(port); err != nil {
			t.Error(err)
		}
		// FreePorts of any process skips a port whose UDP socket is taken.
		if reservation, err := net.ListenPacket("udp", Address(port)); err == nil {
			reservation.Close()
			t.Errorf("port %d is not reserved", port)
		}
	}
}
