//! The C interface of stack.h over smoltcp. It translates and decides nothing.
mod page_allocator;

use std::collections::VecDeque;
use std::slice;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, IpEndpoint, IpListenEndpoint, Ipv4Address};

#[global_allocator]
static ALLOCATOR: page_allocator::PageAllocator = page_allocator::PageAllocator;

/// The packets on their way into the stack and out of it.
struct Packets {
    mtu: usize,
    arrived: Option<Vec<u8>>,
    to_send: VecDeque<Vec<u8>>,
}

struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct ToSend<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Packets {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = ToSend<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, ToSend<'_>)> {
        let packet = self.arrived.take()?;
        Some((Arrived(packet), ToSend(&mut self.to_send)))
    }

    fn transmit(&mut self, _: Instant) -> Option<ToSend<'_>> {
        Some(ToSend(&mut self.to_send))
    }

    // No bit of a packet is wrong: the network repeats what it has damaged.
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities.checksum = ChecksumCapabilities::ignored();
        capabilities
    }
}

pub struct Stack {
    packets: Packets,
    interface: Interface,
    sockets: SocketSet<'static>,
    handles: Vec<Option<SocketHandle>>, // by the number of a socket
    free: Vec<u32>,
}

impl Stack {
    fn number(&mut self, handle: SocketHandle) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.handles[number as usize] = Some(handle);
                number
            }
            None => {
                self.handles.push(Some(handle));
                self.handles.len() as u32 - 1
            }
        }
    }

    fn handle(&self, number: u32) -> SocketHandle {
        self.handles[number as usize].expect("a socket that exists")
    }

    fn tcp(&mut self, number: u32) -> &mut tcp::Socket<'static> {
        let handle = self.handle(number);
        self.sockets.get_mut(handle)
    }

    fn udp(&mut self, number: u32) -> &mut udp::Socket<'static> {
        let handle = self.handle(number);
        self.sockets.get_mut(handle)
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Endpoint {
    address: u32,
    port: u16,
}

impl Endpoint {
    fn listened(self) -> IpListenEndpoint {
        let addr = (self.address != 0).then(|| address_of(self.address));
        IpListenEndpoint { addr, port: self.port }
    }

    fn exact(self) -> IpEndpoint {
        IpEndpoint::new(address_of(self.address), self.port)
    }

    fn of(given: Option<IpEndpoint>) -> Endpoint {
        given.map_or(Endpoint::default(), |endpoint| {
            let IpAddress::Ipv4(address) = endpoint.addr;
            Endpoint { address: address.to_bits(), port: endpoint.port }
        })
    }
}

fn address_of(bits: u32) -> IpAddress {
    IpAddress::Ipv4(Ipv4Address::from_bits(bits))
}

#[repr(C)]
pub struct Tcp {
    state: u32,
    may_receive: u32,
    may_send: u32,
    received: u64,
    unsent: u64,
    room: u64,
    local: Endpoint,
    remote: Endpoint,
}

#[repr(C)]
pub struct TcpOptions {
    nagle: u32,
    keep_alive_us: i64,
    ack_delay_us: i64,
}

fn state_number(state: tcp::State) -> u32 {
    match state {
        tcp::State::Closed => 0,
        tcp::State::Listen => 1,
        tcp::State::SynSent => 2,
        tcp::State::SynReceived => 3,
        tcp::State::Established => 4,
        tcp::State::FinWait1 => 5,
        tcp::State::FinWait2 => 6,
        tcp::State::CloseWait => 7,
        tcp::State::Closing => 8,
        tcp::State::LastAck => 9,
        tcp::State::TimeWait => 10,
    }
}

fn duration_of(us: i64) -> Option<Duration> {
    (us > 0).then(|| Duration::from_micros(us as u64))
}

// Every function requires pointers as stack.h describes them.

#[unsafe(no_mangle)]
pub extern "C" fn apenet_ip_stack_new(address: u32, prefix: u8, mtu: usize, seed: u64) -> *mut Stack {
    let mut packets = Packets { mtu, arrived: None, to_send: VecDeque::new() };
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = seed;
    let mut interface = Interface::new(config, &mut packets, Instant::ZERO);
    interface.update_ip_addrs(|addresses| {
        let _ = addresses.push(IpCidr::new(address_of(address), prefix));
        let _ = addresses.push(IpCidr::new(IpAddress::v4(127, 0, 0, 1), 8));
    });
    let sockets = SocketSet::new(Vec::new());
    Box::into_raw(Box::new(Stack { packets, interface, sockets, handles: Vec::new(), free: Vec::new() }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_stack_free(stack: *mut Stack) {
    drop(unsafe { Box::from_raw(stack) });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_receive(stack: *mut Stack, now_us: i64, packet: *const u8, bytes: usize) {
    let own = unsafe { &mut *stack };
    own.packets.arrived = Some(unsafe { slice::from_raw_parts(packet, bytes) }.to_vec());
    unsafe { apenet_ip_poll(stack, now_us) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_poll(stack: *mut Stack, now_us: i64) {
    let own = unsafe { &mut *stack };
    own.interface.poll(Instant::from_micros(now_us), &mut own.packets, &mut own.sockets);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_next_us(stack: *mut Stack, now_us: i64) -> i64 {
    let own = unsafe { &mut *stack };
    let now = Instant::from_micros(now_us);
    own.interface.poll_at(now, &own.sockets).map_or(-1, |time| time.total_micros())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_to_send(stack: *const Stack, bytes: *mut usize) -> *const u8 {
    match unsafe { &*stack }.packets.to_send.front() {
        Some(packet) => {
            unsafe { *bytes = packet.len() };
            packet.as_ptr()
        }
        None => std::ptr::null(),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_sent(stack: *mut Stack) {
    unsafe { &mut *stack }.packets.to_send.pop_front();
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_tcp_new(stack: *mut Stack, receive_bytes: usize, send_bytes: usize) -> u32 {
    let own = unsafe { &mut *stack };
    let buffer = |bytes| tcp::SocketBuffer::new(vec![0; bytes]);
    let mut socket = tcp::Socket::new(buffer(receive_bytes), buffer(send_bytes));
    socket.set_congestion_control(tcp::CongestionControl::Cubic);
    let handle = own.sockets.add(socket);
    own.number(handle)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_tcp_listen(stack: *mut Stack, socket: u32, local: Endpoint) -> i32 {
    match unsafe { &mut *stack }.tcp(socket).listen(local.listened()) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_tcp_connect(
    stack: *mut Stack,
    socket: u32,
    local: Endpoint,
    remote: Endpoint,
) -> i32 {
    let own = unsafe { &mut *stack };
    let handle = own.handle(socket);
    let tcp = own.sockets.get_mut::<tcp::Socket>(handle);
    match tcp.connect(own.interface.context(), remote.exact(), local.listened()) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_tcp_inspect(stack: *const Stack, socket: u32, tcp: *mut Tcp) {
    let own = unsafe { &*stack };
    let seen = own.sockets.get::<tcp::Socket>(own.handle(socket));
    unsafe {
        *tcp = Tcp {
            state: state_number(seen.state()),
            may_receive: seen.may_recv().into(),
            may_send: seen.may_send().into(),
            received: seen.recv_queue() as u64,
            unsent: seen.send_queue() as u64,
            room: (seen.send_capacity() - seen.send_queue()) as u64,
            local: Endpoint::of(seen.local_endpoint()),
            remote: Endpoint::of(seen.remote_endpoint()),
        }
    };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_tcp_set(stack: *mut Stack, socket: u32, options: *const TcpOptions) {
    let (own, given) = unsafe { (&mut *stack, &*options) };
    let tcp = own.tcp(socket);
    tcp.set_nagle_enabled(given.nagle != 0);
    tcp.set_keep_alive(duration_of(given.keep_alive_us));
    tcp.set_ack_delay(duration_of(given.ack_delay_us));
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_tcp_send(stack: *mut Stack, socket: u32, data: *const u8, bytes: usize) -> i64 {
    let data = unsafe { slice::from_raw_parts(data, bytes) };
    unsafe { &mut *stack }.tcp(socket).send_slice(data).map_or(-1, |sent| sent as i64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_tcp_receive(
    stack: *mut Stack,
    socket: u32,
    data: *mut u8,
    bytes: usize,
    only_peeks: i32,
) -> i64 {
    let tcp = unsafe { &mut *stack }.tcp(socket);
    let data = unsafe { slice::from_raw_parts_mut(data, bytes) };
    let taken = if only_peeks != 0 { tcp.peek_slice(data) } else { tcp.recv_slice(data) };
    taken.map_or(-1, |taken| taken as i64)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_tcp_close(stack: *mut Stack, socket: u32) {
    unsafe { &mut *stack }.tcp(socket).close();
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_tcp_abort(stack: *mut Stack, socket: u32) {
    unsafe { &mut *stack }.tcp(socket).abort();
}

const DATAGRAM_BYTES: usize = 256; // of the buffer, for which there is one place

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_udp_new(stack: *mut Stack, receive_bytes: usize, send_bytes: usize) -> u32 {
    let own = unsafe { &mut *stack };
    let buffer = |bytes: usize| {
        udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; bytes / DATAGRAM_BYTES], vec![0; bytes])
    };
    let handle = own.sockets.add(udp::Socket::new(buffer(receive_bytes), buffer(send_bytes)));
    own.number(handle)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_udp_bind(stack: *mut Stack, socket: u32, local: Endpoint) -> i32 {
    let udp = unsafe { &mut *stack }.udp(socket);
    udp.close();
    match udp.bind(local.listened()) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_udp_send(
    stack: *mut Stack,
    socket: u32,
    source: Endpoint,
    target: Endpoint,
    data: *const u8,
    bytes: usize,
) -> i32 {
    let udp = unsafe { &mut *stack }.udp(socket);
    if bytes > udp.payload_send_capacity() {
        return -2;
    }
    let mut metadata = udp::UdpMetadata::from(target.exact());
    metadata.local_address = (source.address != 0).then(|| address_of(source.address));
    match udp.send_slice(unsafe { slice::from_raw_parts(data, bytes) }, metadata) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_udp_receive(
    stack: *mut Stack,
    socket: u32,
    data: *mut u8,
    bytes: usize,
    source: *mut Endpoint,
    target: *mut Endpoint,
) -> i64 {
    let udp = unsafe { &mut *stack }.udp(socket);
    let data = unsafe { slice::from_raw_parts_mut(data, bytes) };
    let Ok((datagram, metadata)) = udp.recv() else {
        return -1;
    };
    let taken = datagram.len().min(bytes);
    data[..taken].copy_from_slice(&datagram[..taken]);
    unsafe {
        *source = Endpoint::of(Some(metadata.endpoint));
        *target = Endpoint::of(metadata.local_address.map(|address| IpEndpoint::new(address, 0)));
    }
    datagram.len() as i64
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_udp_can_send(stack: *const Stack, socket: u32) -> i32 {
    let own = unsafe { &*stack };
    own.sockets.get::<udp::Socket>(own.handle(socket)).can_send().into()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_udp_next_bytes(stack: *mut Stack, socket: u32) -> i64 {
    match unsafe { &mut *stack }.udp(socket).peek() {
        Ok((datagram, _)) => datagram.len() as i64,
        Err(_) => -1,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn apenet_ip_socket_free(stack: *mut Stack, socket: u32) {
    let own = unsafe { &mut *stack };
    let handle = own.handle(socket);
    own.sockets.remove(handle);
    own.handles[socket as usize] = None;
    own.free.push(socket);
}
