// A worker of rowq, as docs/examples/README.md describes it: go run worker.go calls.go QUEUE_NAME
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

// handle is what the worker is there for. An error means another attempt.
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
	// step 1: say who you are, how many messages you want at a time, and for how long.
	host, _ := os.Hostname()
	name := fmt.Sprint(host, " ", os.Getpid())
	w := worker{db: db, queue: os.Args[1], name: name, batchSize: 10, leaseSeconds: 30}
	if seconds, err := strconv.Atoi(os.Getenv("LEASE_SECONDS")); err == nil {
		w.leaseSeconds = seconds
	}
	// step 2: a signal asks the loops to end; it ends nothing by itself.
	stop, cancel := signal.NotifyContext(background, syscall.SIGTERM, os.Interrupt)
	defer cancel()
	go w.connected(stop, w.keepHouse)
	w.connected(stop, w.work)
}

// step 3: when a connection is lost, open another one, after a pause that grows.
func (w *worker) connected(stop context.Context, loop func(context.Context, *sql.Conn) error) {
	for pause := 100 * time.Millisecond; stop.Err() == nil; {
		conn, err := w.db.Conn(background)
		if err == nil {
			pause = 100 * time.Millisecond
			err = loop(stop, conn)
			conn.Close()
		}
		if isRefused(err, "RQ7") {
			log.Fatal(err) // No queue of this name, say: it does not help to wait.
		}
		if err != nil {
			log.Printf("%v; next try in %v", err, pause)
			sleep(stop, pause)
			pause = min(2*pause, 5*time.Second)
		}
	}
}

// step 4: call maintain once a second, on a connection that no message can hold up.
func (w *worker) keepHouse(stop context.Context, conn *sql.Conn) (err error) {
	for err == nil && stop.Err() == nil {
		_, err = conn.ExecContext(background, "select from rowq.maintain($1)", w.queue)
		sleep(stop, time.Second)
	}
	return err
}

func (w *worker) work(stop context.Context, conn *sql.Conn) error {
	for idle := 50 * time.Millisecond; stop.Err() == nil; {
		// step 5: lease a batch; the call is a transaction of its own.
		messages, err := w.dequeue(conn)
		if err != nil {
			return err
		}
		// step 6: while there is nothing, ask less and less often.
		if len(messages) == 0 {
			sleep(stop, idle)
			idle = min(2*idle, time.Second)
			continue
		}
		idle = 50 * time.Millisecond
		// RQ721 says that the claim has run out: its messages are somebody else's.
		if err := w.workOn(stop, conn, messages); err != nil && !isRefused(err, "RQ721") {
			return err
		}
	}
	return nil
}

// workOn handles the messages of one claim, one after the other.
func (w *worker) workOn(stop context.Context, conn *sql.Conn, messages []message) error {
	// step 7: extend the lease long before its end, for as long as the claim is at work.
	claimed, end := context.WithCancel(background)
	defer end()
	go w.extendLease(claimed, end, messages[0].claim)

	// step 8: begin nothing after a signal, nor what is perhaps not yours any more.
	for ; len(messages) > 0 && stop.Err() == nil; messages = messages[1:] {
		if claimed.Err() != nil {
			return nil
		}
		// step 9: do the work. It may have been done before, by a worker that was killed then.
		m := messages[0]
		if failure := handle(claimed, m); failure != nil {
			// step 10: what failed gets another attempt, after a delay that grows.
			if err := w.retryLater(conn, m, failure); err != nil {
				return err
			}
			continue
		}
		// step 11: what is done is completed, by the claim that still has it.
		outcome, err := w.complete(conn, m)
		if err != nil {
			return err
		}
		if outcome == "completed" {
			fmt.Println("done", w.queue, m.id, m.attempt)
		}
	}
	// step 12: give back what you have not begun; no attempt is spent.
	return w.release(conn, messages)
}
