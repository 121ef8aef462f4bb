package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// Owner is the user a cluster belongs to and runs as.
type Owner struct {
	Name     string
	uid, gid int
	// credential is nil if the owner is the user who runs the stack.
	credential *syscall.Credential
}

// unprivileged are the users that root's clusters may belong to, in order of
// preference.
var unprivileged = []string{"postgres", "nobody"}

// ownerOf returns the user for the cluster below root: the user who runs the stack,
// or, if that is the superuser, the owner of the existing data or an unprivileged
// user.
func ownerOf(root string) (Owner, error) {
	if os.Geteuid() != 0 {
		return current(), nil
	}
	if info, err := os.Stat(dataDir(root)); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
			return ownerWithID(int(stat.Uid), int(stat.Gid)), nil
		}
	}
	return Unprivileged()
}

// Unprivileged returns the user that root's new clusters belong to. For any other
// user it returns that user.
func Unprivileged() (Owner, error) {
	if os.Geteuid() != 0 {
		return current(), nil
	}
	for _, name := range unprivileged {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr != nil || gidErr != nil || uid <= 0 {
			continue
		}
		return ownerWithID(uid, gid), nil
	}
	return Owner{}, errors.New("Postgres refuses to run as root, and the machine has neither a postgres user nor a nobody user to run it")
}

// current returns the user who runs the stack.
func current() Owner {
	return Owner{Name: nameOf(os.Geteuid()), uid: os.Geteuid(), gid: os.Getegid()}
}

func ownerWithID(uid, gid int) Owner {
	return Owner{
		Name: nameOf(uid), uid: uid, gid: gid,
		credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
	}
}

func nameOf(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// command returns a command that runs the program as the owner, with no environment
// variables that would point Postgres elsewhere.
func (o Owner) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	// The owner may not be able to enter the directory where the stack was started.
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.credential}
	return cmd
}

// CanEnter reports whether the owner can enter the directory. It tries it: computing it
// from file modes would miss access lists.
func (o Owner) CanEnter(dir string) bool {
	return o.command("/bin/sh", "-c", `cd -- "$1"`, "sh", dir).Run() == nil
}

// makeDirectory creates a directory that only the owner may enter. It accepts an existing
// one only if it belongs to the owner: everyone may write to some parents, so someone
// else could have created it.
func (o Owner) makeDirectory(path string) error {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		return o.chown(path)
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot create the directory for Postgres: %w", err)
	}
	if !belongsTo(path, o.uid) {
		return fmt.Errorf("%s is in the way: it is not a directory of the user %s (remove it, or run as its owner)", path, o.Name)
	}
	return os.Chmod(path, 0o700)
}

func (o Owner) chown(path string) error {
	if o.credential == nil {
		return nil
	}
	if err := os.Lchown(path, o.uid, o.gid); err != nil {
		return fmt.Errorf("cannot give %s to the user %s: %w", path, o.Name, err)
	}
	return nil
}

// belongsTo reports whether the path is a directory of the user, and not a link.
func belongsTo(path string, uid int) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == uid
}
