// Package folder is a [limits.Coordinator] that the processes of one machine share:
// they agree in a folder, without a server.
//
//	lock                 held (flock) during each step, by one process at a time
//	queue                held by the one that waits for lock: nobody passes it
//	state.json           keys, buckets, pauses and who waits; replaced by rename
//	members/ID.lock      held for life by the member ID; touched to wake it
//	members/ID.json      what the member holds; replaced by rename
//	members/ID.N.child   held by a command that was started under its claim N
//
// All of it is JSON that cat shows, in a folder of mode 0700.
//
// Permits in use are counted afresh in each step, over the files whose locks are
// held, and no count is stored. So what a killed process held is free at the next
// look, however it died, and an honest call keeps its permit for as long as it
// takes; a stopped one (SIGSTOP, ^Z) keeps it too. The kernel lets go of a lock when
// the last process that has it open is gone: a command that inherited its claim's
// lock (see [Folder.Inherit]) counts until it ends, even if whoever started it was
// killed.
//
// Whoever waits is woken on Linux; elsewhere it looks by itself, five times a second.
//
// Who is stopped within a step, which takes less than a millisecond, holds up all
// others until it goes on; they say so after two seconds.
//
// A step that cannot be stored grants nothing. Nothing is synced to the disk: when
// the machine goes down every permit is free anyway, and state.json, if it was lost
// or damaged, is only buckets and pauses. Such buckets start empty.
//
// Time is what the kernel counted since the machine started (suspension included),
// from the wall clock at the folder's first use after that. So steps of the wall
// clock change nothing, and time goes on from where it was if the wall clock was
// set back while the machine was down.
package folder

// Options are what [Open] may be told. The zero Options are ready for use.
type Options struct {
	Warn func(message string) // told what was wrong and set right; may be nil
}
