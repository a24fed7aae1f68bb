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

// Sends at most most_pending updates, or says how many updates it has sent to this process in all. The memory
// is free afterwards. What arrives while they wait for room is delivered.
void transport_send(int rank, const uint64_t* updates, int count);
void transport_send_total(int rank, uint64_t updates);
// Delivers what has arrived, or waits for something and delivers it.
void transport_poll(void);
void transport_wait(void);

// Called for what is delivered.
void take_updates(const uint64_t* updates, int count);
void take_total(uint64_t updates);
// The word of this process that the number updates, for transports that change it themselves.
uint64_t* word_of(uint64_t number);

void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
