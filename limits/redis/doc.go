// Package redis is a [limits.Coordinator] that processes on any machines share: they
// agree in a Redis (6.2 or later) or a Valkey.
//
// A batch is one call of one script (rule.lua has the rule, step.lua how state is
// kept), which decides by Redis's clock. All keys of a namespace have one hash tag, so
// that a Cluster keeps them together.
//
// # What a process holds
//
// What a process holds is its own for as long as it is heard of, however long a call
// takes: every 2.5 s at least it says that it is alive. When it was not heard of for
// 10 s, what it held is free. So the permits of a killed process are back within 12.5 s,
// counted from when another process is there to see it. If nobody at all was heard of
// for 5 s, it was Redis that was away, and everybody gets another 10 s.
//
// A process that was stopped (SIGSTOP, ^Z, a suspended machine) or cut off for more
// than 10 s takes up again what it holds when it is back, and says so. Others may have
// got the same permits meanwhile: then a key is over its cap until some of those calls
// have ended, and nothing starts on it before. That is what a partition costs. A request
// that was sent cannot be called back; to end calls before the lease ends, see
// [limits.Lost].
//
// A batch has a number, and its reply is stored: one that was lost is asked for again,
// so that nothing is granted twice and nothing leaks.
//
// # When Redis is lost
//
// Without Redis nothing starts: Sync fails with a [*limits.Lost]. What runs keeps its
// permits, and the claims of the batch are to be said again.
//
// A Redis that is new, was emptied, was restarted or is another one (a failover) may not
// know all that was granted, or nothing. So a new epoch begins: for 3 s nothing starts
// while the processes tell what they hold, and every bucket is empty at its beginning.
// Each process says so. Pauses that Redis has lost are forgotten.
//
// # Settings
//
// maxmemory-policy noeviction, or limits are dropped when memory is full; Open warns of
// any other. appendonly yes keeps pauses over a restart. Replicas are for taking over
// only: they may lack the last moments, which the 3 s are for, and nothing is read from
// them. The Redis user needs the commands of scripts, PUBLISH and SUBSCRIBE, and INFO,
// without which a restart with old data is not noticed.
package redis
