// What the ioctls of netdevice(7), getifaddrs() and if_nametoindex() say of the node's interfaces.
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const char* text(const struct sockaddr* address) {
  static char shown[INET_ADDRSTRLEN];
  struct in_addr in;
  memcpy(&in, (const char*)address + 4, sizeof in);
  return inet_ntop(AF_INET, &in, shown, sizeof shown);
}

static void ask(int file, unsigned long request, const char* what, struct ifreq* one) {
  if (ioctl(file, request, one) != 0) printf(" %s: %s", what, strerror(errno));
}

int main(void) {
  const int file = socket(AF_INET, SOCK_DGRAM, 0);
  struct ifreq all[8];
  struct ifconf list = {.ifc_len = sizeof all, .ifc_req = NULL};
  if (ioctl(file, SIOCGIFCONF, &list) != 0) return 1;
  printf("%d interfaces\n", list.ifc_len / (int)sizeof *all);
  list = (struct ifconf){.ifc_len = sizeof all, .ifc_req = all};
  if (ioctl(file, SIOCGIFCONF, &list) != 0) return 2;
  const int count = list.ifc_len / (int)sizeof *all;
  for (int i = 0; i < count; ++i) {
    struct ifreq one = all[i];
    printf("%s %s", one.ifr_name, text(&one.ifr_addr));
    ask(file, SIOCGIFNETMASK, "mask", &one);
    printf(" mask %s", text(&one.ifr_netmask));
    ask(file, SIOCGIFBRDADDR, "broadcast", &one);
    printf(" broadcast %s", text(&one.ifr_broadaddr));
    ask(file, SIOCGIFMTU, "mtu", &one);
    printf(" mtu %d", one.ifr_mtu);
    ask(file, SIOCGIFFLAGS, "flags", &one);
    printf(" up %d loopback %d", (one.ifr_flags & IFF_UP) != 0, (one.ifr_flags & IFF_LOOPBACK) != 0);
    ask(file, SIOCGIFHWADDR, "hardware", &one);
    printf(" ether %d", one.ifr_hwaddr.sa_family == ARPHRD_ETHER);
    ask(file, SIOCGIFINDEX, "index", &one);
    const int number = one.ifr_ifindex;
    ask(file, SIOCGIFNAME, "name", &one);
    char name[IF_NAMESIZE];
    const char* by_number = if_indextoname((unsigned)number, name);
    printf(" index %d %s %s %u\n", number, one.ifr_name, by_number ? by_number : "none",
           if_nametoindex(one.ifr_name));
  }
  struct ifreq other;
  memset(&other, 0, sizeof other);
  strcpy(other.ifr_name, "wlan7");
  ask(file, SIOCGIFADDR, "wlan7", &other);
  strcpy(other.ifr_name, "eth0");
  ask(file, SIOCSIFMTU, "change", &other);
  ask(file, SIOCGIFMAP, "map", &other);
  printf("\n");
  struct ifaddrs* first;
  if (getifaddrs(&first) != 0) return 3;
  for (const struct ifaddrs* one = first; one != NULL; one = one->ifa_next)
    printf("getifaddrs %s %s\n", one->ifa_name, text(one->ifa_addr));
  freeifaddrs(first);
  close(file);
  return 0;
}
