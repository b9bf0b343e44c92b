package main

import (
	"context"
	"database/sql"
	"errors"
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

func (w *worker) complete(conn *sql.Conn, m message) (outcome string, err error) {
	err = conn.QueryRowContext(background,
		"select outcome from rowq.complete($1, $2, array[$3::bigint])",
		w.queue, m.claim, m.id).Scan(&outcome)
	return outcome, err
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
