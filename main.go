// Agentlimit runs batches of HTTP requests and commands against services that
// limit them. A job file says once what each host, account and pool takes (so
// many calls at once, so many started in a time); no limit is ever exceeded, no
// call waits that could start, and every job ends with one truthful record.
//
//	agentlimit run FILE...       run the jobs, appending records to a results file
//	agentlimit each -- COMMAND   make a call of each line of standard input
//	agentlimit exec -- COMMAND   run one command under limits that processes share
//	agentlimit validate FILE...  say all that is wrong; --show: how it is understood
//	agentlimit plan FILE...      say how a run will go
//	agentlimit report RESULTS... say what happened
//	agentlimit audit RESULTS...  prove that all limits were kept
//	agentlimit status            say who holds what at a coordinator
//	agentlimit --help            the rest
//
// A job file in short:
//
//	limits:
//	  hosts:
//	    api.example.com: {concurrency: 4, rate: 10/s, burst: 20}
//	  accounts:
//	    team-a: {concurrency: 2}
//	jobs:
//	  - id: list-users
//	    account: team-a
//	    http:
//	      url: https://api.example.com/users
//	      headers: {Authorization: "Bearer ${env:API_TOKEN}"}
//	  - id: backup
//	    host: db-1
//	    exec: {argv: [pg_dump, app]}
//
// A service, or a command, that says when to come back is left alone until then.
// A job that cannot start by its deadline is deferred, and not started late. A
// request that was sent, got no answer and is not safe to repeat ends unknown.
//
// Each flag may be set by a variable, AGENTLIMIT_GRACE for --grace; the flag
// wins over the variable, and that over the file.
//
// Only data goes to standard output. The exit codes of run are
//
//	0            all jobs succeeded, or there was nothing to do
//	1            some failed, are of unknown fate or invalid
//	2            bad usage or a bad file: nothing ran
//	3            the run could not go on: the results cannot be written
//	4            the results file is in use by another run
//	75           none failed, some were deferred
//	129 130 143  stopped by SIGHUP, SIGINT, SIGTERM
package main

import (
	"os"

	"agentlimit/cmd"
)

func main() { os.Exit(cmd.Main()) }
