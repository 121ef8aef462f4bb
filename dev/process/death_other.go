//go:build !linux

package process

import "syscall"

// setDeathSignal does nothing: only Linux tells children of a parent's death.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}
