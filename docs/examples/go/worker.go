// A rowq worker, see docs/examples/README.md: go run worker.go calls.go QUEUE_NAME
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

type worker struct {
	db           *sql.DB
	queue        string
	name         string
	batchSize    int
	leaseSeconds int
}

// handle handles a message. An error means a retry.
func handle(claimed context.Context, m message) error {
	var content struct {
		Order, Fail int
		Seconds     float64
	}
	if err := json.Unmarshal(m.body, &content); err != nil {
		return err
	}
	sleep(claimed, time.Duration(content.Seconds*float64(time.Second)))
	if content.Fail == 1 && m.attempt == 1 {
		return fmt.Errorf("order %d fails at its first attempt", content.Order)
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: worker QUEUE_NAME")
	}
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	// step 1: set the worker's name, the batch size and the length of the lease.
	host, _ := os.Hostname()
	name := fmt.Sprint(host, " ", os.Getpid())
	w := worker{db: db, queue: os.Args[1], name: name, batchSize: 10, leaseSeconds: 30}
	if seconds, err := strconv.Atoi(os.Getenv("LEASE_SECONDS")); err == nil {
		w.leaseSeconds = seconds
	}
	// step 2: a signal sets a flag that ends the loops.
	stop, cancel := signal.NotifyContext(background, syscall.SIGTERM, os.Interrupt)
	defer cancel()
	go w.connected(stop, w.maintain)
	w.connected(stop, w.work)
}

// step 3: if the connection is lost, open a new one after a growing pause.
func (w *worker) connected(stop context.Context, loop func(context.Context, *sql.Conn) error) {
	for pause := 100 * time.Millisecond; stop.Err() == nil; {
		conn, err := w.db.Conn(background)
		if err == nil {
			pause = 100 * time.Millisecond
			err = loop(stop, conn)
			conn.Close()
		}
		if isRefused(err, "RQ7") {
			log.Fatal(err) // For example an unknown queue: waiting does not help.
		}
		if err != nil {
			log.Printf("%v; next try in %v", err, pause)
			sleep(stop, pause)
			pause = min(2*pause, 5*time.Second)
		}
	}
}

// step 4: call maintain once a second, on its own connection.
func (w *worker) maintain(stop context.Context, conn *sql.Conn) (err error) {
	for err == nil && stop.Err() == nil {
		_, err = conn.ExecContext(background, "select from rowq.maintain($1)", w.queue)
		sleep(stop, time.Second)
	}
	return err
}

func (w *worker) work(stop context.Context, conn *sql.Conn) (err error) {
	var messages []message
	for idle := 50 * time.Millisecond; stop.Err() == nil || len(messages) > 0; {
		// step 5: lease a batch; the call is its own transaction.
		if len(messages) == 0 {
			if messages, err = w.dequeue(conn); err != nil {
				return err
			}
		}
		// step 6: poll an empty queue with growing pauses.
		if len(messages) == 0 {
			sleep(stop, idle)
			idle = min(2*idle, time.Second)
			continue
		}
		idle = 50 * time.Millisecond
		// RQ721: the lease expired, and another worker has the messages.
		if messages, err = w.workOn(stop, conn, messages); err != nil && !isRefused(err, "RQ721") {
			return err
		}
	}
	return nil
}

// workOn handles the messages of one claim in turn, and returns the next ones.
func (w *worker) workOn(stop context.Context, conn *sql.Conn, messages []message) (next []message, err error) {
	// step 7: extend the lease while the messages of the claim are handled.
	claimed, end := context.WithCancel(background)
	defer end()
	go w.extendLease(claimed, end, messages[0].claim)

	// step 8: start no message after a signal, or after the claim is lost.
	var done []message
	for ; len(messages) > 0 && stop.Err() == nil; messages = messages[1:] {
		if claimed.Err() != nil {
			return nil, nil
		}
		// step 9: handle the message idempotently: a killed worker may have done it before.
		m := messages[0]
		failure := handle(claimed, m)
		if failure == nil {
			done = append(done, m)
			continue
		}
		// step 10: retry a failed message after a growing delay.
		if err := w.retryLater(conn, m, failure); err != nil {
			return nil, err
		}
	}
	// step 11: complete messages with their claim id, and lease the next ones in the same call.
	if next, err = w.finish(stop, conn, done); err != nil {
		return nil, err
	}
	// step 12: release messages that are not started; no attempt is spent.
	return next, w.release(conn, messages)
}
