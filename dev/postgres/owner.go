package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// owner is the user whom clusters belong to and who runs them.
type owner struct {
	credential *syscall.Credential // nil for the user who runs the stack
}

// newOwner returns the user who runs the stack, or, as Postgres refuses to run as root, an
// unprivileged one for root.
func newOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return owner{}, err
		}
		return owner{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return owner{}, errors.New("Postgres refuses to run as root, and the machine has neither a postgres user nor a nobody user to run it")
}

// command returns a command that runs the program as the owner, with no environment
// variables that would point Postgres elsewhere.
func (o owner) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	// The owner may not be able to enter the directory where the stack was started.
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.credential}
	return cmd
}

func (o owner) chown(path string) error {
	if o.credential == nil {
		return nil
	}
	return os.Lchown(path, int(o.credential.Uid), int(o.credential.Gid))
}

// Enterable returns the first of the directories, given by absolute paths, that Postgres's
// user can enter. It tries it: computing it from file modes would miss access lists.
func Enterable(dirs ...string) (string, error) {
	o, err := newOwner()
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		if o.command("/bin/sh", "-c", `cd -- "$1"`, "sh", dir).Run() == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("the user who runs Postgres can enter none of %q", dirs)
}
