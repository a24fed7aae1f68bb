// How the processes of random_access.c send updates to each other: one file of this folder for each library.
// Every failure ends the program with a message.
#ifndef APENET_RANDOM_ACCESS_TRANSPORT_H
#define APENET_RANDOM_ACCESS_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

enum { most_pending = 1024 };  // updates that a process may hold back: the rules' look-ahead

void transport_open(void);
int transport_rank(void);
int transport_size(void);
// Returns when all processes have called it. Nothing is under way then.
void transport_close(void);
// Whether one of two simultaneous updates of a word may be lost.
bool transport_may_lose(void);

// Sends at most most_pending updates. The memory is free afterwards. What arrives while it waits for room is
// delivered.
void transport_send(int rank, const uint64_t* updates, int count);
// Delivers what has arrived, or waits for something and delivers it.
void transport_poll(void);
void transport_wait(void);

// Called for what is delivered.
void take_updates(const uint64_t* updates, int count);
// For transports that change the words themselves: the word of this process that the number updates, and that
// one update of another process is in it.
uint64_t* word_of(uint64_t number);
void took_update(void);

void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
