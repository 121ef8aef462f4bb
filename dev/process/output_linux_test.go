package process

import (
	"os/exec"
	"sync/atomic"
	"testing"
)

// Every Linux has /dev/full.
func TestALogThatIsFullEndsNoProgram(t *testing.T) {
	var seen atomic.Int32
	p, err := Start(exec.Command("sh", "-c", `for i in 1 2 3; do /bin/echo line || exit 1; done`), Options{
		Name: "the script", Log: "/dev/full", Line: func(string) { seen.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context()); err != nil || seen.Load() != 3 {
		t.Errorf("%v after %d lines", err, seen.Load())
	}
}
