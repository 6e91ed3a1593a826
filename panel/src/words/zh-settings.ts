/** Simplified Chinese: the descriptions of the settings, which the daemon has in English. */
import type { SettingWords } from './daemon-words.ts';

export const zhSettings = {
  'setting.api_addr': 'API 的 TCP 地址。非环回地址需要 `api_token`。',
  'setting.api_token': 'API 令牌，以 `Authorization: Bearer` 发送。留空：无。',
  'setting.auto_publish': '注册后发布智能体。已发布的记录始终会续期。',
  'setting.bootstrap':
    '用于加入网络的节点：`host:port`，或 `host`（端口 4121）。前面加 `<node aid>@` 时，节点必须证明持有该密钥。',
  'setting.disable_relay': '从不使用中继或 UDP over TLS。需要它们的连接会失败。',
  'setting.disable_upnp': '不向路由器请求端口映射（UPnP、NAT-PMP、PCP）。',
  'setting.fallback_host': '要发布的公网主机名或 IP 地址，直到有节点通过其他地址访问到本节点。',
  'setting.files_root': '对象文件夹的绝对路径。留空：数据目录中的 `files`。`none`：关闭对象功能。',
  'setting.help_others': '如果陌生节点可以访问本节点，则帮助其他节点：协助它们互相建立连接并为其中继。',
  'setting.key_dir': '密钥文件的绝对路径。留空：数据目录中的 `keys`。',
  'setting.lan_tcp': '与本机和私有网络中的节点通信时，也使用更快的 TCP。',
  'setting.listen_addr': 'DHT 的 UDP 地址，`host:port` 或 `:port`。',
  'setting.log_format': 'stderr 日志的格式。',
  'setting.log_level': '要记录的最低日志级别。',
  'setting.mdns': '通过组播 DNS 查找本局域网中的其他节点。',
  'setting.min_observed_peers': '使用本节点的某个地址之前，必须报告该地址的不同对等节点数。',
  'setting.name': '本节点的名称，邀请方和受邀节点可以看到。留空：计算机的名称。',
  'setting.network': '私有网络的名称。忽略其他网络的节点。留空：默认网络。',
  'setting.open_browser': '守护进程在桌面环境启动时，在浏览器中打开面板。',
  'setting.otlp_endpoint':
    'OpenTelemetry 收集器的基础 URL，如 `http://127.0.0.1:4318`。跨度发送到其下的 `/v1/traces`。留空：不导出。',
  'setting.otlp_headers_file': '收集器标头文件的绝对路径，每行一个 `Name: value`。需要 https，或本机上的收集器。',
  'setting.proxy':
    '用于 UDP over TLS 的 HTTP 代理：以 `http://` 或 `https://` 开头的 URL；`auto` 读取 `HTTPS_PROXY`、`ALL_PROXY` 和 `NO_PROXY`；或 `none`。',
  'setting.proxy_command': '输出代理的 `user:password` 的命令。代理拒绝密码时会再次运行。',
  'setting.quic_listen_addr': 'QUIC 的 UDP 地址。留空：`listen_addr` 的下一个端口。',
  'setting.relay_bytes_per_day': '每天（UTC）为其他节点中继的字节数。',
  'setting.relay_bytes_per_second': '每秒为其他节点中继的字节数。',
  'setting.relay_sessions': '同时中继的节点对数。0：不中继。',
  'setting.require_local_token': '本机程序也必须提供令牌。',
  'setting.share_traces': '调用方可以读取其调用在本节点上的跨度。',
  'setting.tls_ca': 'PEM 证书的绝对路径，辅助节点的证书必须由它们签名，用于检查 TLS 的网络。留空：任何证书。',
  'setting.tls_cert': '`tls_listen` 的 PEM 证书的绝对路径。留空：新的自签名证书。',
  'setting.tls_key': '其 PEM 密钥的绝对路径。',
  'setting.tls_listen':
    'UDP over TLS 的 TCP 地址，用逗号分隔：`host:port`，或位于 Web 服务器之后的 `http://127.0.0.1:port`。`auto`：`listen_addr` 的端口和 443。`none`：不监听。',
  'setting.tls_sessions': '可以同时经 TLS 使用本节点 UDP 端口的节点数。0：无。',
  'setting.trace_percent': '没有 `traceparent` 的调用中要采样的比例（百分比）。服务可在 `traceparent` 中看到该决定。',
  'setting.traces': '跟踪调用。`false`：`traceparent` 原样传递，且不会添加。',
  'setting.turn_servers': 'TURN 服务器，在没有其他可用路径时使用。',
} satisfies SettingWords;
