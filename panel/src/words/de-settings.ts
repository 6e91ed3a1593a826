/** German: the descriptions of the settings, which the daemon has in English. */
import type { SettingWords } from './daemon-words.ts';

export const deSettings = {
  'setting.acme_directory': 'URL des ACME-Servers, der Zertifikate für öffentliche Adressen ausstellt.',
  'setting.api_addr': 'TCP-Adresse der API. Eine Adresse, die nicht loopback ist, braucht ein `api_token`.',
  'setting.api_token': 'API-Token, gesendet als `Authorization: Bearer`. Leer: keines.',
  'setting.auto_publish':
    'Agenten nach der Registrierung veröffentlichen. Veröffentlichtes wird in jedem Fall erneuert.',
  'setting.bootstrap':
    'Knoten, über die dieser Knoten dem Netz beitritt: `host:port`, oder `host` für Port 4121. Mit `<node aid>@` davor muss der Knoten diesen Schlüssel nachweisen.',
  'setting.disable_relay': 'Nie ein Relay oder UDP über TLS verwenden. Verbindungen, die das brauchen, schlagen fehl.',
  'setting.disable_upnp': 'Den Router nicht um ein Port-Mapping bitten (UPnP, NAT-PMP, PCP).',
  'setting.entry_bytes_per_day': 'Bytes pro Tag (UTC), die für öffentliche Namen weitergeleitet werden.',
  'setting.entry_bytes_per_second': 'Bytes pro Sekunde, die für öffentliche Namen weitergeleitet werden.',
  'setting.entry_connections': 'Öffentliche Verbindungen, die gleichzeitig weitergeleitet werden.',
  'setting.entry_proxies':
    'IP-Adressen und IPv4-Netze von Webservern vor `tls_listen`, die TLS mit einem PROXY-Header weitergeben.',
  'setting.fallback_host':
    'Öffentlicher Hostname oder öffentliche IP-Adresse. Gilt, bis ein Knoten diesen unter einer anderen Adresse erreicht hat.',
  'setting.files_root':
    'Absoluter Pfad des Ordners für Objekte. Leer: `files` im Datenverzeichnis. `none`: Objekte sind aus.',
  'setting.help_others':
    'Wenn Fremde diesen Knoten erreichen, anderen Knoten helfen: Verbindungen zwischen ihnen vermitteln und für sie weiterleiten.',
  'setting.key_dir': 'Absoluter Pfad der Schlüsseldateien. Leer: `keys` im Datenverzeichnis.',
  'setting.lan_tcp': 'Zu Knoten auf diesem Rechner und in privaten Netzen auch TCP verwenden, das schneller ist.',
  'setting.listen_addr': 'UDP-Adresse der DHT, `host:port` oder `:port`.',
  'setting.log_format': 'Format des Logs auf stderr.',
  'setting.log_level': 'Niedrigste Stufe, die ins Log geschrieben wird.',
  'setting.mdns': 'Andere Knoten in diesem LAN über Multicast-DNS finden.',
  'setting.min_observed_peers':
    'Anzahl verschiedener Peers, die dieselbe Adresse dieses Knotens melden müssen, bevor er sie verwendet.',
  'setting.name': 'Name dieses Knotens, den einladende und eingeladene Knoten sehen. Leer: der Name des Rechners.',
  'setting.network': 'Name eines privaten Netzes. Knoten anderer Netze werden ignoriert. Leer: das Standardnetz.',
  'setting.open_browser': 'Das Panel in einem Browser öffnen, wenn der Daemon auf einem Desktop startet.',
  'setting.otlp_endpoint':
    'Basis-URL eines OpenTelemetry-Collectors, etwa `http://127.0.0.1:4318`. Spans gehen an `/v1/traces` darunter. Leer: kein Export.',
  'setting.otlp_headers_file':
    'Absoluter Pfad einer Datei mit Headern für den Collector, `Name: value` je Zeile. Nur mit https oder einem Collector auf diesem Rechner.',
  'setting.proxy':
    'HTTP-Proxy für UDP über TLS: eine URL mit `http://` oder `https://`, `auto` für `HTTPS_PROXY`, `ALL_PROXY` und `NO_PROXY`, oder `none`.',
  'setting.proxy_command':
    'Befehl, der `user:password` für den Proxy ausgibt. Er läuft erneut, wenn der Proxy das Passwort ablehnt.',
  'setting.public_cert':
    'Absoluter Pfad eines PEM-Zertifikats für öffentliche Adressen. Leer: Zertifikate von `acme_directory`.',
  'setting.public_key': 'Absoluter Pfad des PEM-Schlüssels dazu.',
  'setting.public_names':
    'Domains dieses Eingangs: Agenten, denen `svc entry allow` es erlaubt, haben Namen darunter. Leer: kein Eingang.',
  'setting.quic_listen_addr': 'UDP-Adresse von QUIC. Leer: der Port nach `listen_addr`.',
  'setting.relay_bytes_per_day': 'Bytes pro Tag (UTC), die für andere weitergeleitet werden.',
  'setting.relay_bytes_per_second': 'Bytes pro Sekunde, die für andere weitergeleitet werden.',
  'setting.relay_sessions': 'Paare anderer Knoten, für die gleichzeitig weitergeleitet wird. 0: keine.',
  'setting.require_local_token': 'Das Token auch von Programmen auf diesem Rechner verlangen.',
  'setting.share_traces': 'Aufrufer dürfen die Spans ihrer Aufrufe auf diesem Knoten lesen.',
  'setting.tls_ca':
    'Absoluter Pfad von PEM-Zertifikaten, die die Zertifikate der Helfer signieren müssen, für Netze, die TLS untersuchen. Leer: jedes Zertifikat.',
  'setting.tls_cert': 'Absoluter Pfad des PEM-Zertifikats für `tls_listen`. Leer: ein neues, selbst signiertes.',
  'setting.tls_key': 'Absoluter Pfad des zugehörigen PEM-Schlüssels.',
  'setting.tls_listen':
    'TCP-Adressen für UDP über TLS, durch Kommas getrennt: `host:port`, oder `http://127.0.0.1:port` hinter einem Webserver. `auto`: der Port von `listen_addr` und 443. `none`: keine.',
  'setting.tls_sessions': 'Knoten, die gleichzeitig UDP-Ports dieses Knotens über TLS benutzen dürfen. 0: keine.',
  'setting.trace_percent':
    'Anteil der Aufrufe ohne `traceparent`, die aufgezeichnet werden, in Prozent. Dienste sehen die Entscheidung in `traceparent`.',
  'setting.traces':
    'Aufrufe verfolgen. `false`: `traceparent` wird unverändert weitergegeben, und keines wird hinzugefügt.',
  'setting.turn_servers': 'TURN-Server, verwendet, wenn kein anderer Pfad funktioniert.',
} satisfies SettingWords;
