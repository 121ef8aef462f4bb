package console_test

import (
	"os"
	"testing"

	"millwright/console/consoletest"
)

func TestMain(m *testing.M) { os.Exit(consoletest.Run(m)) }
