/** Spanish: the descriptions of the settings, which the daemon has in English. */
import type { SettingWords } from './daemon-words.ts';

export const esSettings = {
  'setting.acme_directory': 'URL del servidor ACME que firma los certificados de las direcciones públicas.',
  'setting.api_addr': 'Dirección TCP de la API. Una dirección que no sea de loopback necesita un `api_token`.',
  'setting.api_token': 'Token de la API, enviado como `Authorization: Bearer`. Vacío: ninguno.',
  'setting.auto_publish': 'Publicar los agentes después de registrarlos. Lo publicado se renueva en todo caso.',
  'setting.bootstrap':
    'Nodos por los que este nodo se une a la red: `host:port`, o `host` para el puerto 4121. Con `<node aid>@` delante, el nodo debe demostrar que tiene esa clave.',
  'setting.disable_relay': 'No usar nunca un relay ni UDP sobre TLS. Las conexiones que los necesitan fallan.',
  'setting.disable_upnp': 'No pedir al router una asignación de puertos (UPnP, NAT-PMP, PCP).',
  'setting.entry_bytes_per_day': 'Bytes por día (UTC) que se reenvían para nombres públicos.',
  'setting.entry_bytes_per_second': 'Bytes por segundo que se reenvían para nombres públicos.',
  'setting.entry_connections': 'Conexiones públicas que se reenvían al mismo tiempo.',
  'setting.entry_proxies':
    'Direcciones IP y redes IPv4 de los servidores web delante de `tls_listen` que reenvían TLS con una cabecera PROXY.',
  'setting.fallback_host':
    'Nombre de host o dirección IP públicos que se publican hasta que un nodo llegue a este por otra dirección.',
  'setting.files_root':
    'Ruta absoluta de la carpeta de objetos. Vacío: `files` en el directorio de datos. `none`: objetos desactivados.',
  'setting.help_others':
    'Si los desconocidos pueden llegar a este nodo, ayudar a otros nodos: ponerlos en contacto y hacer de relay para ellos.',
  'setting.key_dir': 'Ruta absoluta de los archivos de claves. Vacío: `keys` en el directorio de datos.',
  'setting.lan_tcp': 'Usar también TCP, que es más rápido, con nodos de esta máquina y de redes privadas.',
  'setting.listen_addr': 'Dirección UDP de la DHT, `host:port` o `:port`.',
  'setting.log_format': 'Formato del log en stderr.',
  'setting.log_level': 'Nivel mínimo que se escribe en el log.',
  'setting.mdns': 'Buscar otros nodos de esta LAN por DNS multicast.',
  'setting.min_observed_peers':
    'Número de pares distintos que deben informar de la misma dirección de este nodo antes de usarla.',
  'setting.name': 'Nombre de este nodo, que ven los nodos que invitan y los invitados. Vacío: el nombre de la máquina.',
  'setting.network': 'Nombre de una red privada. Se ignoran los nodos de otras redes. Vacío: la red predeterminada.',
  'setting.open_browser': 'Abrir el panel en un navegador cuando el daemon se inicia en un escritorio.',
  'setting.otlp_endpoint':
    'URL base de un colector de OpenTelemetry, como `http://127.0.0.1:4318`. Los spans van a `/v1/traces`. Vacío: sin exportación.',
  'setting.otlp_headers_file':
    'Ruta absoluta de un archivo con cabeceras para el colector, `Name: value` en cada línea. Requiere https o un colector en esta máquina.',
  'setting.proxy':
    'Proxy HTTP para UDP sobre TLS: una URL con `http://` o `https://`, `auto` para leer `HTTPS_PROXY`, `ALL_PROXY` y `NO_PROXY`, o `none`.',
  'setting.proxy_command':
    'Comando que imprime `user:password` para el proxy. Se ejecuta de nuevo cuando el proxy rechaza la contraseña.',
  'setting.public_cert':
    'Ruta absoluta de un certificado PEM para las direcciones públicas. Vacío: certificados de `acme_directory`.',
  'setting.public_key': 'Ruta absoluta de su clave PEM.',
  'setting.public_names':
    'Dominios de esta entrada: los agentes que `svc entry allow` permite tienen nombres por debajo de ellos. Vacío: sin entrada.',
  'setting.quic_listen_addr': 'Dirección UDP de QUIC. Vacío: el puerto siguiente a `listen_addr`.',
  'setting.relay_bytes_per_day': 'Bytes por día (UTC) que se retransmiten para otros.',
  'setting.relay_bytes_per_second': 'Bytes por segundo que se retransmiten para otros.',
  'setting.relay_sessions': 'Parejas de otros nodos para las que se retransmite al mismo tiempo. 0: ninguna.',
  'setting.require_local_token': 'Exigir el token también a los programas de esta máquina.',
  'setting.share_traces': 'Los llamantes pueden leer los spans de sus llamadas en este nodo.',
  'setting.tls_ca':
    'Ruta absoluta de certificados PEM que deben firmar los de los nodos auxiliares, para redes que inspeccionan TLS. Vacío: cualquier certificado.',
  'setting.tls_cert': 'Ruta absoluta del certificado PEM para `tls_listen`. Vacío: uno nuevo autofirmado.',
  'setting.tls_key': 'Ruta absoluta de su clave PEM.',
  'setting.tls_listen':
    'Direcciones TCP para UDP sobre TLS, separadas por comas: `host:port`, o `http://127.0.0.1:port` detrás de un servidor web. `auto`: el puerto de `listen_addr` y 443. `none`: ninguna.',
  'setting.tls_sessions': 'Nodos que pueden usar puertos UDP de este nodo por TLS al mismo tiempo. 0: ninguno.',
  'setting.trace_percent':
    'Porcentaje de las llamadas sin `traceparent` que se registran. Los servicios ven la decisión en `traceparent`.',
  'setting.traces': 'Trazar las llamadas. `false`: `traceparent` pasa sin cambios y no se añade ninguno.',
  'setting.turn_servers': 'Servidores TURN, que se usan si no funciona ninguna otra ruta.',
} satisfies SettingWords;
