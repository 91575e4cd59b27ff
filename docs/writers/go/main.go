// Appends one event of the aggregate that is the argument. The database is in DATABASE_URL.
package main

import (
	"context"
	"log"
	"os"

	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	connection, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close(ctx)
	event := map[string]any{"type": "coffee.rated", "stars": 5}
	// Commits if the function returns nil, else rolls back.
	err = pgx.BeginFunc(ctx, connection, func(tx pgx.Tx) error {
		// Here goes the change that the event tells of, in the same transaction: both are committed, or neither.
		_, err := tx.Exec(ctx, "select outbox_append($1, $2, $3)", os.Args[1], "brew.ratings.v1", event)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
