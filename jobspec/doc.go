// Package jobspec reads job files: YAML and JSON documents, and JSON Lines,
// one job a line. What comes out is checked, with defaults applied and
// references put in; what is wrong comes out as [Errors], each with its place.
//
// Values. A text keeps what was typed: account: no, id: 0123 and a header value
// 1.10 arrive as they are. Null is refused, and so is an empty text, except in
// quotes as an argument behind the program, an environment variable or a form
// field, and anywhere in json. Numbers are plain decimal, switches true or false.
// In json a scalar without quotes is null, true, false or a number only if RFC
// 8259 spells it so, else a string. Durations have units (30s, 1.5m, 1h30m, 1d)
// and are above zero, but for retry.max_wait: 0s, never to wait on a pause. The
// word none lifts timeout, deadline, not_before and each field of a limit.
//
// Several files. Limits, vars and defaults of all files are joined; a value that
// two files spell differently is refused. Keys at the top that begin with x- are
// free, so that YAML anchors have a place; merge keys (<<) are honoured.
//
// Defaults. The mappings http, exec, retry, backoff, expect, output, tls, labels,
// headers and env are merged with those of a job, field by field (headers by
// name, in any case); every other value of a job replaces the default, lists and
// cost too. One of body, body_base64, json, form and body_file replaces all five; so do argv
// and shell, stdin and stdin_file. A job must have http or exec itself, and takes
// no defaults from the other.
//
// References. ${env:NAME}, ${file:PATH}, ${var:NAME}, ${item:FIELD} and ${job:id}
// are put into each value of a job, json and form included, and of limits. Secrets,
// which are env (unless public_env names it) and file, stand only within http and
// exec, but not in method or a host, and in limits.coordinator. $${ is a literal ${;
// no other $ is touched. Values that were put in are not looked at again; vars hold no
// references, though $${ counts in them too. Behind the host of a url, items are
// percent-encoded (RFC 3986, section 2.1); in front of that, a reference stays a part
// of the scheme, user, host or port that it stands in. Text under shell is left alone:
// commands in a shell get all vars as VAR_NAME variables, and the fields of their row
// as ITEM_NAME.
//
// Other formats. A file of OpenAI's batches or of vegeta's targets is read as lines of
// which each is made a job; texts in it are what they are, and hold no references.
//
// Packed inputs. What gzip or zstd has compressed is known by its first bytes.
//
// Rows. A job of a document with for_each stands for one job a row. Rows come from
// files of any length, which are read one row at a time.
//
// Order. Files that can be read twice are checked whole, and their jobs listed in an
// index; of those that are handed out and not done, each host has a like number, so
// that many jobs for one do not hide those for others.
//
// Ids. A job's hash covers its http or exec block with defaults, vars and items put
// in, and ${env:…}, ${file:…} and ${job:id} by name; quotes count within json only. A job without
// an id gets the first 12 hex digits of its hash, the second and third equal job
// with -2 and -3 behind.
package jobspec
