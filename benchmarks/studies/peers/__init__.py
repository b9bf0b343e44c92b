"""Compares rowq with other queues, each run by its own programs with its documented client.

A `Peer` (peer.py) describes a queue; the lists are in python_peers.py and node.py. The harness
starts `<program> <role>` as a process for each role and exchanges JSON with it, one object a line,
UTF-8: the configuration and orders on its standard input, messages on its standard output. Standard
error is shown if the process fails (exit status not 0).

The protocol
    1. harness -> program   the configuration, below; a program ignores fields it does not need
    2. program -> harness   {"ready": true}       connected, imported, warmed up; nothing done yet.
                            `prepare` skips this: it works at once and prints its result.
    3. harness -> program   {"go": true}          start
    4. program -> harness   {"handled": 1234}     `consume` only: handlers that have returned so far
                            in this process, about every 50 ms while that number grows
       harness -> program   {"mark": true}        `consume` only, at any time after go: discard the
                            latencies so far, and nothing else
    5. harness -> program   {"stop": true}        `consume`, `maintain`, and `produce` to end early:
                            finish running handlers, acknowledge their messages, release the others,
                            continue with 6. The end of standard input means the same.
    6. program -> harness   the result; then the process ends with status 0 within 10 seconds

The roles
    prepare     create the client's database objects in an empty database and the queue `queue`, as
                the client's manual describes. Result {"prepared": true, "version": "1.2.3"}, the
                version of the installed client.
    produce     add `messages` messages: at `rate` a second, or as fast as possible if `rate` is 0;
                `bulk` messages per call of the client's bulk function (the last call may have
                fewer), or if `bulk` is 1, singly by its plain function. Each call is a transaction.
                At a rate, call number i is due at start + i * bulk / rate; a late call is made at
                once. Stop after `seconds`. `delay_seconds` > 0: not due until then.
    consume     `workers` handlers at a time in this process, `batch` messages per fetch if the
                client has such a setting (otherwise the nearest one), acknowledged as the client
                does it. The handler only records its start: count 1, the number `n`, the latency
                now - `t`. Ends when ordered to stop.
    maintain    only if the peer has `has_maintenance`: the peer's own maintenance process (a
                ticker), one per run, from before the first `produce` until the end. Result {}.

The configuration
    role, url           the role; a libpq URL of the database, over a unix socket:
                        postgresql://postgres@/name?host=%2Fdirectory
    pg                  the same in parts: {"host": directory, "port": 5432, "user", "database"}
    queue               "bench"
    messages, rate, bulk, first, delay_seconds, bodies, seconds         for `produce`
    workers, batch                                                      for `consume`, `prepare`
                        (`prepare` gets the workers of all processes together, for peers that
                        create something for each worker)
    keys                0, or the number of message groups: messages of a group are handled one at a
                        time, first in, first out, by the client's own feature
    worker_number       0, 1, ..: the number of this consuming process

A message's body is the JSON object {"t": T, "n": N, "pad": "xxx"}: T the seconds since 1970 with at
least microseconds, taken just before the call that adds it; N = `first`, `first` + 1, ..; the pad
fills the text up to about the requested length; if `keys` is not 0, also "k": "key 7", the
message's group, of number N modulo `keys`. `bodies` is a list of [bytes, count]:
[[1000, 9], [100000, 1]] means nine of 1,000 bytes, then one of 100,000, and so on.

Results (seconds are floats; CPU, buffers, WAL, sizes, queries are measured from outside)
    produce     {"messages": 1000, "began": T, "ended": T, "call_us": histogram}
                call_us: length of each call in microseconds
    consume     {"messages": 1000, "sum": sum of all N, "began": T or null, "ended": T or null,
                 "latency_us": histogram, "latency_max_us": 1234.5}
                began, ended: start of the first and of the last handler, seconds since 1970
                With `keys`, "starts": [[k, N, T], ...]: each handled message and its start

A histogram is an object of buckets and counts: {"345": 12, "346": 3}. The bucket of a value of V
microseconds is floor(50 * ln(max(V, 1))), so a bucket is 2 % wide.
"""
