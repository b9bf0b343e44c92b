// Enqueues a message with its order: go run enqueue.go QUEUE_NAME ORDER_NUMBER
package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"

	_ "github.com/jackc/pgx/v5/stdlib"
)

var errTotal = errors.New("a total below zero")

// place stores an order and enqueues its message in one transaction.
func place(db *sql.DB, queue string, number int, total float64) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // Has no effect after the commit.

	if _, err := tx.Exec("insert into orders values ($1, $2)", number, total); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]int{"order": number, "fail": 0})
	if err != nil {
		return err
	}
	var id int64
	var outcome string
	enqueue := "select message_id, outcome from rowq.enqueue(p_queue_name => $1, p_body => $2::text)"
	if err := tx.QueryRow(enqueue, queue, string(body)).Scan(&id, &outcome); err != nil {
		return err
	}
	fmt.Printf("order %d: %s as message %d\n", number, outcome, id)
	if total < 0 {
		return fmt.Errorf("order %d has %w", number, errTotal)
	}
	return tx.Commit()
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: enqueue QUEUE_NAME ORDER_NUMBER")
	}
	number, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	create := "create table if not exists orders (order_number integer primary key, total decimal(12, 2))"
	if _, err := db.Exec(create); err != nil {
		log.Fatal(err)
	}
	if err := place(db, os.Args[1], number, 11.77); err != nil {
		log.Fatal(err)
	}
	err = place(db, os.Args[1], number+1, -1)
	if !errors.Is(err, errTotal) {
		log.Fatal(err)
	}
	fmt.Printf("%v: it was rolled back, and its message with it\n", err)
}
