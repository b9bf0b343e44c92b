package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// background is for calls that a signal does not cancel.
var background = context.Background()

type message struct {
	claim, id int64
	attempt   int
	body      []byte
}

func (w *worker) dequeue(conn *sql.Conn) ([]message, error) {
	rows, err := conn.QueryContext(background,
		"select claim_id, message_id, attempt, body from rowq.dequeue_fast($1, $2, $3, $4)",
		w.queue, w.batchSize, w.name, w.leaseSeconds)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var messages []message
	for rows.Next() {
		var m message
		if err := rows.Scan(&m.claim, &m.id, &m.attempt, &m.body); err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, rows.Err()
}

// extendLease sends heartbeats until the claim's context ends, and ends it if one fails.
func (w *worker) extendLease(claimed context.Context, end func(), claim int64) {
	defer end()
	third := time.Duration(w.leaseSeconds) * time.Second / 3
	for sleep(claimed, third) {
		_, err := w.db.ExecContext(claimed, "select from rowq.extend_lease($1, $2, $3)",
			w.queue, claim, w.leaseSeconds)
		if err != nil {
			return
		}
	}
}

func (w *worker) retryLater(conn *sql.Conn, m message, failure error) error {
	_, err := conn.ExecContext(background,
		"select from rowq.retry_later($1, $2, array[$3::bigint], p_error => $4)",
		w.queue, m.claim, m.id, failure.Error())
	return err
}

const (
	completeOnly       = "select outcome, 0, message_id, 0, null from rowq.complete($1, $2, $3::bigint[])"
	completeAndDequeue = "select outcome, claim_id, message_id, coalesce(attempt, 0), body" +
		" from rowq.complete_and_dequeue($1, $2, $3::bigint[], null, $4, $5, $6)"
)

// complete completes messages of a claim, and returns those that were stale and the next ones.
func (w *worker) complete(conn *sql.Conn, statement string, done []message, more ...interface{}) (
	stale map[int64]bool, next []message, err error) {
	values := append([]interface{}{w.queue, done[0].claim, ids(done)}, more...)
	rows, err := conn.QueryContext(background, statement, values...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	stale = map[int64]bool{}
	for rows.Next() {
		var outcome string
		var m message
		if err := rows.Scan(&outcome, &m.claim, &m.id, &m.attempt, &m.body); err != nil {
			return nil, nil, err
		}
		switch outcome {
		case "stale":
			stale[m.id] = true
		case "leased":
			next = append(next, m)
		}
	}
	return stale, next, rows.Err()
}

// finish completes messages, prints those that were not stale, and returns the next ones; after a
// signal, or on an error, it only completes.
func (w *worker) finish(stop context.Context, conn *sql.Conn, done []message) ([]message, error) {
	if len(done) == 0 {
		return nil, nil
	}
	var stale map[int64]bool
	var next []message
	err := stop.Err()
	if err == nil {
		stale, next, err = w.complete(conn, completeAndDequeue, done, w.batchSize, w.name, w.leaseSeconds)
	}
	if err != nil {
		stale, next, err = w.complete(conn, completeOnly, done)
	}
	for _, m := range done {
		if err == nil && !stale[m.id] {
			fmt.Println("done", w.queue, m.id, m.attempt)
		}
	}
	return next, err
}

// ids returns the ids of messages as the text of an array.
func ids(messages []message) string {
	var texts []string
	for _, m := range messages {
		texts = append(texts, strconv.FormatInt(m.id, 10))
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func (w *worker) release(conn *sql.Conn, messages []message) error {
	if len(messages) == 0 {
		return nil
	}
	_, err := conn.ExecContext(background, "select from rowq.release($1, $2)", w.queue, messages[0].claim)
	return err
}

// isRefused reports whether rowq refused a call, with a number that begins so.
func isRefused(err error, number string) bool {
	var refusal interface{ SQLState() string }
	return errors.As(err, &refusal) && strings.HasPrefix(refusal.SQLState(), number)
}

// sleep waits for a duration or the context's end, and reports whether the context lives.
func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
	return ctx.Err() == nil
}

func min(one, other time.Duration) time.Duration {
	if one < other {
		return one
	}
	return other
}
