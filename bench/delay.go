package main

import (
	"context"
	"net"
	"time"
)

// delayWindow bounds what is on its way in one direction of a connection, in reads.
const delayWindow = 4096

// delayed forwards connections to the server and delivers what each side sends the delay later,
// as if the server were far away. It returns the address to connect to.
func delayed(ctx context.Context, server string, delay time.Duration) string {
	listener := must((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"))
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // the bench ends
			}
			far, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			go forward(far, near, delay)
			go forward(near, far, delay)
		}
	}()
	return listener.Addr().String()
}

// forward copies what comes from one connection to the other, the delay later, until either ends.
func forward(to, from net.Conn, delay time.Duration) {
	type sent struct {
		at   time.Time
		data []byte
	}
	way := make(chan sent, delayWindow)
	go func() {
		defer close(way)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				way <- sent{time.Now(), data[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		_, _ = to.Close(), from.Close()
		for range way { // until the reader has ended
		}
	}()
	for s := range way {
		<-time.After(time.Until(s.at.Add(delay)))
		if _, err := to.Write(s.data); err != nil {
			return
		}
	}
}
