#include "server/net/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/log.h"

namespace hotkv {

namespace {

constexpr int kAcceptsPerTurn = 1000;
constexpr int kExhaustedPauseMs = 100;

// "host:port" as CLIENT LIST shows it.
std::string AddressText(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return std::string(text) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
  }
  return text;
}

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24) == 127;
  }
  if (address.ss_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6);
}

Status BindFailure(const std::string& name, int error) {
  return Status::FromErrno(error, "Could not create server TCP listening socket", name);
}

Result<ListenSocket> BindTcp(const std::string& host, uint16_t port, int backlog) {
  const std::string name = host + ":" + std::to_string(port);
  addrinfo hints{};
  hints.ai_family = host == "*" ? AF_INET : (host == "::*" ? AF_INET6 : AF_UNSPEC);
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const bool any = host == "*" || host == "::*";
  addrinfo* found = nullptr;
  const int lookup =
      getaddrinfo(any ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (lookup != 0) return Status::InvalidArgument(name + ": " + gai_strerror(lookup));
  Status failure = Status::InvalidArgument(name + ": no address");
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      failure = BindFailure(name, errno);
      continue;
    }
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (info->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, backlog) == 0) {
      freeaddrinfo(found);
      return ListenSocket{fd, false, name};
    }
    failure = BindFailure(name, errno);
    close(fd);
  }
  freeaddrinfo(found);
  return failure;
}

// Somebody accepts there: not what a crash has left behind.
bool IsServed(const sockaddr_un& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const bool served = result == 0 || errno == EAGAIN;
  close(fd);
  return served;
}

Result<ListenSocket> BindUnix(const std::string& path, mode_t mode, int backlog) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return Status::InvalidArgument(path + ": path too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  if (IsServed(address)) {
    return Status::FromErrno(EADDRINUSE, "Could not create server Unix socket", path);
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Status::FromErrno(errno, "socket", path);
  struct stat there {};
  const bool exists = lstat(path.c_str(), &there) == 0;
  if (exists && S_ISSOCK(there.st_mode)) unlink(path.c_str());  // left behind by a crash
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, backlog) != 0) {
    const int error = errno;
    close(fd);
    return Status::FromErrno(error, "Could not create server Unix socket", path);
  }
  if (mode != 0) chmod(path.c_str(), mode);
  return ListenSocket{fd, true, path};
}

bool IsOptionalFailure(const Status& status) {
  const int error = status.sys_errno();
  return error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EPROTONOSUPPORT ||
         error == ESOCKTNOSUPPORT || error == EPFNOSUPPORT;
}

}  // namespace

void CloseSockets(std::vector<ListenSocket>* sockets) {
  for (const ListenSocket& socket : *sockets) {
    if (socket.is_unix) unlink(socket.name.c_str());
    close(socket.fd);
  }
  sockets->clear();
}

Result<std::vector<ListenSocket>> BindSockets(const Settings& settings) {
  std::vector<ListenSocket> sockets;
  const auto port = static_cast<uint16_t>(settings.Int(Setting::kPort));
  const auto backlog = static_cast<int>(settings.Int(Setting::kTcpBacklog));
  const std::vector<std::string> hosts =
      port == 0 ? std::vector<std::string>() : settings.Words(Setting::kBind);
  for (const std::string& word : hosts) {
    const bool optional = word.starts_with('-');
    Result<ListenSocket> socket = BindTcp(optional ? word.substr(1) : word, port, backlog);
    if (socket.ok()) {
      sockets.push_back(std::move(socket).value());
    } else if (!optional && !IsOptionalFailure(socket.status())) {
      CloseSockets(&sockets);
      return std::move(socket).status();
    }
  }
  if (!hosts.empty() && sockets.empty()) {
    return Status::InvalidArgument("none of the addresses of 'bind' can be listened on");
  }
  const std::string& path = settings.Text(Setting::kUnixSocket);
  if (!path.empty()) {
    const auto mode = static_cast<mode_t>(settings.Int(Setting::kUnixSocketPerm));
    Result<ListenSocket> socket = BindUnix(path, mode, backlog);
    if (!socket.ok()) {
      CloseSockets(&sockets);
      return std::move(socket).status();
    }
    sockets.push_back(std::move(socket).value());
  }
  return sockets;
}

Result<ListenSocket> BindLoopback() { return BindTcp("127.0.0.1", 0, 128); }

uint16_t PortOf(const ListenSocket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<sockaddr_in6&>(address).sin6_port);
  return 0;
}

void PrepareTcpSocket(int fd, int64_t keepalive_s) {
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  if (keepalive_s <= 0) return;
  // Dead after about twice the interval: first probe at it, then three at a third of it.
  constexpr int kProbes = 3;
  const auto idle = static_cast<int>(keepalive_s);
  const int interval = idle / kProbes > 0 ? idle / kProbes : 1;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof(kProbes));
}

Acceptor::Acceptor(std::vector<ListenSocket> sockets, std::function<void(Accepted)> accept)
    : sockets_(std::move(sockets)), accept_(std::move(accept)) {}

Acceptor::~Acceptor() {
  Stop();
  CloseSockets(&sockets_);
  if (wake_fd_ >= 0) close(wake_fd_);
}

Status Acceptor::Start() {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return Status::FromErrno(errno, "eventfd", "");
  thread_ = std::thread([this] { Run(); });
  return Status::Ok();
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  eventfd_write(wake_fd_, 1);
  thread_.join();
}

void Acceptor::Replace(std::vector<ListenSocket> sockets) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // A Unix socket's file was replaced by the new one's: only the descriptor goes.
    for (const ListenSocket& socket : sockets_) close(socket.fd);
    sockets_ = std::move(sockets);
  }
  eventfd_write(wake_fd_, 1);
}

std::vector<std::string> Acceptor::names() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const ListenSocket& socket : sockets_) names.push_back(socket.name);
  return names;
}

void Acceptor::Run() {
  pthread_setname_np(pthread_self(), "hotkv-accept");
  while (!stop_.load(std::memory_order_acquire)) {
    std::vector<pollfd> polled{{wake_fd_, POLLIN, 0}};
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (const ListenSocket& socket : sockets_) polled.push_back({socket.fd, POLLIN, 0});
    }
    if (poll(polled.data(), polled.size(), -1) <= 0) continue;
    eventfd_t count = 0;
    if (polled[0].revents != 0) eventfd_read(wake_fd_, &count);
    std::lock_guard<std::mutex> lock(mutex_);
    for (const ListenSocket& socket : sockets_) AcceptAll(socket);
  }
}

void Acceptor::AcceptAll(const ListenSocket& socket) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    const int fd = accept4(socket.fd, reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        Log(LogLevel::kWarning,
            std::string("Error accepting a client connection: ") + std::strerror(errno));
        poll(nullptr, 0,
             kExhaustedPauseMs);  // the connection stays in the queue: do not spin on it
      }
      return;
    }
    Accepted accepted;
    accepted.fd = fd;
    accepted.is_unix = socket.is_unix;
    if (socket.is_unix) {
      accepted.is_local = true;
      accepted.peer = accepted.local = socket.name + ":0";
    } else {
      accepted.is_local = IsLoopback(address);
      accepted.peer = AddressText(address);
      sockaddr_storage own{};
      socklen_t own_size = sizeof(own);
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size);
      accepted.local = AddressText(own);
    }
    accept_(std::move(accepted));
  }
}

}  // namespace hotkv
