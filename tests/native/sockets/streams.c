// Echoes lines by the C library's streams, as a program that inetd starts, and names the interfaces.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char** arguments) {
  (void)arguments;
  FILE* const in = count > 1 ? fdopen(dup(0), "r") : stdin;
  FILE* const out = count > 1 ? fdopen(dup(1), "w") : stdout;
  struct ifaddrs* list = NULL;
  char line[99];
  while (fgets(line, sizeof line, in) != NULL) fprintf(out, "%d: %s", fileno(in) >= 0, line);
  getifaddrs(&list);
  for (const struct ifaddrs* one = list; one != NULL; one = one->ifa_next)
    fprintf(out, "%s %s\n", one->ifa_name, inet_ntoa(((struct sockaddr_in*)one->ifa_addr)->sin_addr));
  freeifaddrs(list);
  return fflush(out);
}
