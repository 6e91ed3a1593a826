/** Japanese: the descriptions of the settings, which the daemon has in English. */
import type { SettingWords } from './daemon-words.ts';

export const jaSettings = {
  'setting.acme_directory': '公開アドレスの証明書に署名する ACME サーバーの URL。',
  'setting.api_addr': 'API の TCP アドレス。ループバック以外のアドレスには `api_token` が必要です。',
  'setting.api_token': 'API トークン。`Authorization: Bearer` で送信します。空欄：なし。',
  'setting.auto_publish': '登録後にエージェントを公開します。公開済みのレコードは常に更新されます。',
  'setting.bootstrap':
    'ネットワークへの参加に使うノード：`host:port`、ポート 4121 なら `host` のみ。先頭に `<node aid>@` を付けると、ノードはその鍵を証明する必要があります。',
  'setting.disable_relay': 'リレーも UDP over TLS も使いません。必要とする接続は失敗します。',
  'setting.disable_upnp': 'ルーターにポートマッピングを要求しません（UPnP、NAT-PMP、PCP）。',
  'setting.entry_bytes_per_day': '公開名のために 1 日（UTC）に転送するバイト数。',
  'setting.entry_bytes_per_second': '公開名のために 1 秒間に転送するバイト数。',
  'setting.entry_connections': '同時に転送する公開接続の数。',
  'setting.entry_proxies':
    '`tls_listen` の前にあり、PROXY ヘッダー付きで TLS を渡す Web サーバーの IP アドレスと IPv4 ネットワーク。',
  'setting.fallback_host': '公開するホスト名または IP アドレス。別のアドレスで到達されるまで使います。',
  'setting.files_root':
    'オブジェクト用フォルダーの絶対パス。空欄：データディレクトリの `files`。`none`：オブジェクトは無効。',
  'setting.help_others': '未知のノードから到達可能な場合に、他のノードを助けます（接続の仲介とリレー）。',
  'setting.key_dir': '鍵ファイルの絶対パス。空欄：データディレクトリの `keys`。',
  'setting.lan_tcp': 'このマシンやプライベートネットワークのノードには、より速い TCP も使います。',
  'setting.listen_addr': 'DHT の UDP アドレス。`host:port` または `:port`。',
  'setting.log_format': 'stderr に出すログの形式。',
  'setting.log_level': 'ログに出す最低のレベル。',
  'setting.mdns': 'マルチキャスト DNS でこの LAN の他のノードを探します。',
  'setting.min_observed_peers': 'このノードのアドレスを使うまでに、同じアドレスを報告する必要があるピアの数。',
  'setting.name': 'このノードの名前。招待する側と招待される側のノードに表示されます。空欄：コンピューターの名前。',
  'setting.network':
    'プライベートネットワークの名前。他のネットワークのノードは無視します。空欄：デフォルトのネットワーク。',
  'setting.open_browser': 'デスクトップでデーモンが起動したとき、パネルをブラウザーで開きます。',
  'setting.otlp_endpoint':
    'OpenTelemetry コレクターのベース URL（例 `http://127.0.0.1:4318`）。スパンはその下の `/v1/traces` に送ります。空欄：送信しません。',
  'setting.otlp_headers_file':
    'コレクター用ヘッダーのファイルの絶対パス。1 行に 1 つの `Name: value`。https、またはこのマシンのコレクターが必要です。',
  'setting.proxy':
    'UDP over TLS の HTTP プロキシ：`http://` か `https://` の URL、`HTTPS_PROXY`、`ALL_PROXY`、`NO_PROXY` を読む `auto`、または `none`。',
  'setting.proxy_command':
    'プロキシの `user:password` を出力するコマンド。プロキシがパスワードを拒否すると再実行します。',
  'setting.public_cert': '公開アドレス用の PEM 証明書の絶対パス。空欄：`acme_directory` の証明書。',
  'setting.public_key': 'その PEM 鍵の絶対パス。',
  'setting.public_names':
    'このエントリーのドメイン。`svc entry allow` が許可したエージェントは、その下の名前を持ちます。空欄：エントリーなし。',
  'setting.quic_listen_addr': 'QUIC の UDP アドレス。空欄：`listen_addr` の次のポート。',
  'setting.relay_bytes_per_day': '他のノードのために 1 日（UTC）にリレーするバイト数。',
  'setting.relay_bytes_per_second': '他のノードのために 1 秒間にリレーするバイト数。',
  'setting.relay_sessions': '同時にリレーするノードの組の数。0：なし。',
  'setting.require_local_token': 'このマシンのプログラムにもトークンを要求します。',
  'setting.share_traces': '呼び出し元は、このノードにある自分の呼び出しのスパンを読めます。',
  'setting.tls_ca':
    'ヘルパーの証明書に署名しているべき PEM 証明書の絶対パス。TLS を検査するネットワーク用。空欄：どの証明書でも可。',
  'setting.tls_cert': '`tls_listen` の PEM 証明書の絶対パス。空欄：新しい自己署名証明書。',
  'setting.tls_key': 'その PEM 鍵の絶対パス。',
  'setting.tls_listen':
    'UDP over TLS の TCP アドレス（カンマ区切り）：`host:port`、またはウェブサーバーの背後では `http://127.0.0.1:port`。`auto`：`listen_addr` のポートと 443。`none`：なし。',
  'setting.tls_sessions': 'TLS 経由でこのノードの UDP ポートを同時に使えるノードの数。0：なし。',
  'setting.trace_percent':
    '`traceparent` のない呼び出しのうち記録する割合（パーセント）。サービスには `traceparent` で判定が見えます。',
  'setting.traces': '呼び出しをトレースします。`false`：`traceparent` はそのまま通り、追加されません。',
  'setting.turn_servers': '他の経路が使えない場合に使う TURN サーバー。',
} satisfies SettingWords;
