package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Loopback is the only address anything of the stack listens on.
const Loopback = "127.0.0.1"

// Free ports are taken from below 32768, where Linux begins to hand out ports
// to outgoing connections: a port from that range could be taken by any
// connection between the moment it is found and the moment it is used.
const lowestFree, highestFree = 20000, 32000

// FreePorts returns n different loopback ports nobody listens on.
func FreePorts(n int) ([]int, error) {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	ports := make([]int, 0, n)
	for range 50 * n {
		port := lowestFree + rand.IntN(highestFree-lowestFree)
		l, err := net.Listen("tcp", Address(port))
		if err != nil {
			continue
		}
		// Held until all are found, so that none is found twice.
		held = append(held, l)
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d could be found", n, lowestFree, highestFree)
}

// ErrPortTaken is the reason why a port that someone listens on cannot be had.
var ErrPortTaken = errors.New("is taken by another program")

// CheckPort returns an error, naming the port, when the loopback port cannot
// be listened on.
func CheckPort(port int) error {
	l, err := net.Listen("tcp", Address(port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d %w", port, ErrPortTaken)
	}
	if err != nil {
		return fmt.Errorf("port %d cannot be listened on: %w", port, err)
	}
	return l.Close()
}

// Address is the loopback address with the port.
func Address(port int) string {
	return net.JoinHostPort(Loopback, strconv.Itoa(port))
}
