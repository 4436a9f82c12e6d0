// Package dirstore keeps claims in a directory, for a gateway on the same machine or volume.
//
// # Durability
//
// Put returns nil once the object and the names of it and of its folders are on the disk, as far
// as fsync can promise. A crash, at any moment, leaves the whole object or none under its key.
//
// # Confinement
//
// Every path is opened relative to the directory through os.Root: neither a key nor a symbolic
// link inside can lead out of it.
//
// # Concurrency
//
// Stores may be used from any goroutine, and several processes may write to one directory. Of two
// Puts of one key the later rename stands; as a key's bytes follow from the hook, they are the
// same.
package dirstore
