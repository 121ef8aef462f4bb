package worker

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/sdk/client"

	"millwright/models"
)

// Without a Temporal that responds, a test fails with a sentence, and nothing waits for long.
func TestATestWithoutTemporalFails(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Logger: nil})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if id, err := (Tester{Client: c}).Send(ctx, "whk_x", models.EventPing); id != "" || !errors.Is(err, ErrNoWorker) {
		t.Errorf("it returned %q, %v", id, err)
	}
}
