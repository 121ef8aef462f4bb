package store_test

import (
	"errors"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"millwright/models"
	"millwright/service/store"
)

// A database that is killed closes its connections, before or within its response.
// Calls get 503: nothing is wrong with the service.
func TestLostConnectionsAreUnavailable(t *testing.T) {
	s := &store.Store{Options: store.Options{Unreachable: func(error) {}}}
	for name, response := range map[string][]byte{
		"before the response":     nil,
		"within a message":        {'C', 0, 0},
		"between two messages":    {'I', 0, 0, 0, 4},
		"within a message's text": {'T', 0, 0, 0, 40, 0},
	} {
		t.Run(name, func(t *testing.T) {
			err := queryServerThatCloses(t, response)
			if err == nil {
				t.Fatal("the query succeeds")
			}
			if own, ok := errors.AsType[*models.Error](s.Translate(err)); !ok || own.Code != models.CodeUnavailable {
				t.Errorf("%q (%T) is not unavailable", err, err)
			}
		})
	}
}

// queryServerThatCloses returns the error of a query whose server sends the bytes and
// closes the connection.
func queryServerThatCloses(t *testing.T, response []byte) error {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		server, err := listener.Accept()
		if err != nil {
			return
		}
		defer server.Close()
		backend := pgproto3.NewBackend(server, server)
		if _, err := backend.ReceiveStartupMessage(); err != nil {
			return
		}
		backend.Send(&pgproto3.AuthenticationOk{})
		backend.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
		backend.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if backend.Flush() != nil {
			return
		}
		if _, err := backend.Receive(); err == nil {
			_, _ = server.Write(response)
		}
	}()
	conn, err := pgx.Connect(t.Context(), "postgres://user@"+listener.Addr().String()+"/name?sslmode=disable&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), "SELECT")
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}
