// Package cli is the command line: one file per verb, one options struct per
// verb, text or JSON out, and exit codes that scripts can rely on.
//
// [Main] is the whole surface. It looks at the name it was called by: as
// connect-mirror-maker it takes MirrorMaker's own arguments and exits with
// MirrorMaker's codes, under any other name it is heliograph with its verbs.
//
// What belongs here is words and codes. Reading a file is config's work, running
// flows is daemon's, and a verb that needs more than telling is in the wrong place.
package cli
