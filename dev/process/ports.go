package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// Loopback is the only address the stack listens on.
const Loopback = "127.0.0.1"

// Free ports are below 32768, where Linux begins to assign ports to outgoing
// connections: above it, any connection could take a port before it is used.
const lowestFree, highestFree = 20000, 32000

// reservations keep the ports of FreePorts from other processes. A UDP socket
// with a port's number reserves it: TCP servers can still listen there, and the
// kernel removes the reservation when the process ends. The tests in e2e reserve
// their ports in the same way.
var reservations struct {
	sync.Mutex
	held []net.PacketConn
}

// FreePorts returns n different loopback ports on which no program listens, and
// reserves them until this process ends.
func FreePorts(n int) ([]int, error) {
	reservations.Lock()
	defer reservations.Unlock()
	ports := make([]int, 0, n)
	for range 50 * n {
		port := lowestFree + rand.IntN(highestFree-lowestFree)
		reservation, err := net.ListenPacket("udp", Address(port))
		if err != nil {
			continue
		}
		if CheckPort(port) != nil {
			reservation.Close()
			continue
		}
		reservations.held = append(reservations.held, reservation)
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("cannot find %d free ports between %d and %d", n, lowestFree, highestFree)
}

// CheckPort returns an error that names the port if the stack cannot listen on it.
func CheckPort(port int) error {
	l, err := net.Listen("tcp", Address(port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d is taken by another program", port)
	}
	if err != nil {
		return fmt.Errorf("cannot listen on port %d: %w", port, err)
	}
	return l.Close()
}

// Address is the loopback address with the port.
func Address(port int) string {
	return net.JoinHostPort(Loopback, strconv.Itoa(port))
}

// Lock locks a directory, or returns an error if another process has locked it. The lock
// ends when the file is closed, also by the end of the process, in all processes that
// inherited it.
func Lock(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
