// Server and client like libfabric's test programs: one command line, to which the client appends the
// server's address. Names are exchanged over a socket, which the server opens late.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "fabric.h"

static int socket_to_peer(const char* server, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  const int here = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT(here >= 0);
  if (server != NULL) {
    EXPECT(inet_pton(AF_INET, server, &address.sin_addr) == 1);
    EXPECT(connect(here, (struct sockaddr*)&address, sizeof address) == 0);
    return here;
  }
  usleep(300000);
  const int reuse = 1;
  EXPECT(setsockopt(here, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) == 0);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT(bind(here, (struct sockaddr*)&address, sizeof address) == 0);
  EXPECT(listen(here, 1) == 0);
  const int peer = accept(here, NULL, NULL);
  EXPECT(peer >= 0);
  close(here);
  return peer;
}

static void exchange_names(struct Fabric* f, int peer) {
  unsigned char name[name_bytes];
  size_t length = sizeof name;
  EXPECT(fi_getname(&f->ep->fid, name, &length) == 0);
  EXPECT(write(peer, name, length) == (ssize_t)length);
  EXPECT(recv(peer, name, length, MSG_WAITALL) == (ssize_t)length);
  EXPECT(fi_av_insert(f->av, name, 1, &f->peers[1 - f->rank], 0, NULL) == 1);
}

static void play(struct Fabric* f) {
  int word = f->rank;
  const fi_addr_t peer = f->peers[1 - f->rank];
  for (int round = 0; round < 10; ++round) {
    if (f->rank == round % 2) {
      EXPECT(fi_tsend(f->ep, &word, sizeof word, NULL, peer, 1, NULL) == 0);
    } else {
      EXPECT(fi_trecv(f->ep, &word, sizeof word, NULL, peer, 1, 0, NULL) == 0);
    }
    next_completion(f->cq);
    ++word;
  }
  EXPECT(word == 10 || word == 11);
}

int main(int argc, char** argv) {
  EXPECT(argc == 2 || argc == 3);
  struct fi_info* hints = hints_for(FI_TAGGED);
  hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  const int peer = socket_to_peer(argc == 3 ? argv[2] : NULL, atoi(argv[1]));
  struct Fabric f;
  open_all(&f, hints);
  EXPECT(f.info->domain_attr->data_progress == FI_PROGRESS_AUTO);
  EXPECT(f.rank == argc - 2);
  struct fi_eq_attr attributes = {.wait_obj = FI_WAIT_UNSPEC};
  struct fid_eq* eq = NULL;
  EXPECT(fi_eq_open(f.fabric, &attributes, &eq, NULL) == 0);
  exchange_names(&f, peer);
  close(peer);
  play(&f);
  struct fi_eq_entry entry;
  uint32_t event = 0;
  EXPECT(fi_eq_read(eq, &event, &entry, sizeof entry, 0) == -FI_EAGAIN);
  EXPECT(fi_close(&eq->fid) == 0);
  close_all(&f);
  if (f.rank == 1) printf("passed\n");
  return 0;
}
