//go:build !linux

package process

import "syscall"

// setDeathSignal is empty: only Linux signals children when their parent dies.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}
