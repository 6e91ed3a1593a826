/** Spanish: the findings of the doctor, which the daemon has in English. */
import type { FindingWords } from './daemon-words.ts';

export const esDoctor = {
  'finding.agents_not_checked': 'Solo se comprobaron los primeros {n} agentes.',
  'finding.api_is_remote': 'La API acepta conexiones de otras máquinas. Cualquiera con el token puede usarla.',
  'finding.cannot_publish_yet': '{name} no está publicado: este nodo no llega a ningún otro nodo.',
  'finding.check_failed': 'La comprobación falló: {error}',
  'finding.clock_ahead': 'El reloj de esta máquina va {seconds} s adelantado, comparado con {n} nodos.',
  'finding.clock_behind': 'El reloj de esta máquina va {seconds} s atrasado, comparado con {n} nodos.',
  'finding.clock_correct': 'El reloj coincide con el de otros nodos ({n} consultados).',
  'finding.clock_unknown': 'Ningún otro nodo ha informado todavía de su hora.',
  'finding.contact_ipv6': '{contact} no tiene dirección IPv4, que la red de registros necesita.',
  'finding.contact_other_key': '{contact} es otro nodo: no demuestra tener la clave que va antes de la @.',
  'finding.contact_silent': '{contact} no responde.',
  'finding.contact_unresolved': '{contact} no tiene dirección: su nombre no se resuelve.',
  'finding.data_missing': 'El directorio de datos {directory} ya no existe.',
  'finding.data_not_writable': 'No se puede escribir en el directorio de datos {directory} ({error}).',
  'finding.data_unreadable': 'No se pueden comprobar los archivos de {directory} ({error}).',
  'finding.data_writable': 'Se puede escribir en el directorio de datos {directory}.',
  'finding.database_rolled_back':
    'La base de datos perdió sus últimos cambios, por un fallo o porque se restauró una copia antigua. Todos los agentes están cerrados a otros nodos.',
  'finding.delegation_expired': 'La delegación de {name} caducó {expires_at}.',
  'finding.delegation_expires': 'La delegación de {name} caduca {expires_at}.',
  'finding.disk_free': 'Hay {mebibytes} MiB libres para {directory}.',
  'finding.disk_full': 'Solo hay {mebibytes} MiB libres para {directory}.',
  'finding.disk_low': 'Solo hay {mebibytes} MiB libres para {directory}.',
  'finding.double_nat': 'El router redirige puertos a este nodo, pero está detrás de otro router.',
  'finding.exit_connecting': 'Ningún nodo responde por {protocol} y todavía no hay un nodo auxiliar conectado por TLS.',
  'finding.exit_failed': 'Ningún nodo responde por {protocol} y ningún nodo auxiliar es accesible por TLS.',
  'finding.exit_flows':
    'Este nodo está conectado por TLS con el nodo auxiliar {helper}: la red corta los flujos UDP algún tiempo después de su inicio.',
  'finding.exit_inspected': 'La red descifra TLS. Las conexiones entre nodos siguen cifradas.',
  'finding.exit_off': 'Ningún nodo responde por {protocol} y disable_relay excluye TLS.',
  'finding.listen_address_lost': 'Este equipo ha perdido la dirección que indica listen_addr.',
  'finding.exit_proxy':
    'Este nodo está conectado por TLS con el nodo auxiliar {helper}, a través del proxy {proxy}: ningún nodo responde por {protocol}.',
  'finding.exit_tls':
    'Este nodo está conectado por TLS con el nodo auxiliar {helper}: ningún nodo responde por {protocol}.',
  'finding.few_nodes': { one: 'Solo se conoce {n} nodo.', other: 'Solo se conocen {n} nodos.' },
  'finding.few_replicas': {
    one: '{name} se publicó {published_at}, pero solo {n} nodo guardó el registro.',
    other: '{name} se publicó {published_at}, pero solo {n} nodos guardaron el registro.',
  },
  'finding.key_exposed': 'Otros usuarios de esta máquina pueden leer {file}.',
  'finding.keys_exposed': {
    one: 'Otros usuarios de esta máquina pueden leer {file} y {n} archivo más.',
    other: 'Otros usuarios de esta máquina pueden leer {file} y {n} archivos más.',
  },
  'finding.keys_private': 'Ningún otro usuario de esta máquina puede leer las claves.',
  'finding.local_addresses': 'Este nodo publica solo direcciones locales: {addresses}',
  'finding.loopback_addresses': 'Este nodo publica {addresses}: solo esta máquina puede usarlo.',
  'finding.mcp_invalid': 'El servidor MCP de {url} responde con el estado {status}, pero sin un resultado válido.',
  'finding.mcp_silent': 'El servidor MCP de {url} no responde.',
  'finding.mcp_works': 'Los clientes MCP pueden conectarse a {url}.',
  'finding.network_joining': 'El nodo todavía se está uniendo a la red.',
  'finding.network_ready': {
    one: 'La red está lista y se conoce {n} nodo.',
    other: 'La red está lista y se conocen {n} nodos.',
  },
  'finding.network_used': 'La red está lista. Pares: {peers}. Nodos que usan la red a través de este: {clients}.',
  'finding.never_published': '{name} nunca se ha publicado.',
  'finding.no_address': 'Este nodo no tiene ninguna dirección que publicar.',
  'finding.no_agents': 'No hay agentes registrados.',
  'finding.no_helper': 'Este nodo está detrás de un NAT ({nat}) y no hay ningún nodo auxiliar conectado.',
  'finding.no_node_known': 'No se conoce ningún otro nodo.',
  'finding.no_service':
    '{name} no tiene ningún servicio vinculado: puede llamar, pero otros agentes no pueden llamarlo.',
  'finding.not_found': '{name} se publicó {published_at}, pero la red no lo encuentra en este nodo.',
  'finding.path_mtu':
    'Solo pasan paquetes UDP cortos: los de 1200 bytes que QUIC necesita se pierden. Las llamadas y los túneles no funcionan.',
  'finding.published': {
    one: '{name} se publicó {published_at} y está guardado en {n} nodo.',
    other: '{name} se publicó {published_at} y está guardado en {n} nodos.',
  },
  'finding.quic_blocked': {
    one: '{n} nodo responde en la red de registros, pero no por QUIC: las llamadas y los túneles no funcionan.',
    other:
      '{n} nodos responden en la red de registros, pero ninguno por QUIC: las llamadas y los túneles no funcionan.',
  },
  'finding.quic_works': 'Los nodos responden por QUIC ({reached} de {dialed}).',
  'finding.reachability_unknown': 'Todavía no se sabe si los desconocidos pueden llegar a este nodo.',
  'finding.reachable': 'Los desconocidos pueden llegar a este nodo.',
  'finding.reached_by_helpers': 'Otros llegan a este nodo a través de {helpers} (NAT: {nat}).',
  'finding.record_expired': 'No se puede encontrar {name}: se publicó {published_at} y el registro ha caducado.',
  'finding.runs_elsewhere':
    '{name} también funciona en otro nodo: la red tiene el número {network} y este nodo publicó el {own}.',
  'finding.service_answers': 'El servicio de {name} responde en {address}.',
  'finding.service_silent': 'El servicio de {name} no responde en {address}{reason}.',
  'finding.settings_overridden': 'Definido por una opción o por el entorno, no en config.toml: {keys}',
  'finding.settings_pending': 'Cambiado, pero todavía sin aplicar: {keys}',
  'finding.started_by_hand': 'svcd se inició a mano: no arranca con la máquina.',
  'finding.svcd_version': 'svcd {version} funciona con Node {node}.',
  'finding.system_service': 'svcd funciona como servicio del sistema: arranca con la máquina.',
  'finding.tls_port_in_use': 'Los nodos sin UDP no pueden conectarse por {address}/tcp: otro programa usa el puerto.',
  'finding.tls_port_not_permitted':
    'Los nodos sin UDP no pueden conectarse por {address}/tcp: el sistema no permite puertos por debajo de 1024.',
  'finding.tls_port_unusable': 'Los nodos sin UDP no pueden conectarse por {address}/tcp: no se puede abrir el puerto.',
  'finding.update_available': 'svcd {latest} está disponible; esta es la versión {current}.',
  'finding.update_check_failed': 'La última búsqueda de actualizaciones falló{reason}.',
  'finding.update_rolled_back': 'La última actualización se revirtió{reason}.',
  'hint.cannot_publish_yet': 'svcd lo publicará en cuanto se pueda llegar a otro nodo.',
  'hint.check_failed': 'Consulte la causa en el log de svcd.',
  'hint.clock_ahead': 'Ajuste el reloj y active NTP. Los demás nodos rechazan los registros con una hora incorrecta.',
  'hint.clock_behind': 'Ajuste el reloj y active NTP. Los demás nodos rechazan los registros con una hora incorrecta.',
  'hint.contact_ipv6': 'Use un host con dirección IPv4 o añada un registro A a su nombre.',
  'hint.contact_other_key':
    'Pida una nueva invitación a su propietario. Quite este contacto con «svc contacts rm <contact>» o de bootstrap.',
  'hint.contact_silent':
    'Compruebe que svcd funciona allí, que su puerto UDP está abierto y que el nombre de la red es el mismo.',
  'hint.contact_unresolved': 'Compruebe el nombre y el DNS de esta máquina, o quítelo de bootstrap.',
  'hint.data_missing':
    'Detenga svcd, restaure el directorio desde una copia de seguridad y vuelva a iniciar svcd. Lo que svcd guarde ahora se pierde al detenerlo.',
  'hint.data_not_writable':
    'Dé permiso de escritura a su propietario, libere espacio en disco o móntelo para escritura.',
  'hint.data_unreadable': 'Permita que los lea el usuario que ejecuta svcd.',
  'hint.database_rolled_back':
    'Revise las listas de acceso, restaure una copia de seguridad si falta algo y ejecute «svc access confirm».',
  'hint.delegation_expired': 'Emita una delegación nueva con la clave maestra y registre el agente con ella.',
  'hint.delegation_expires': 'Emita una delegación nueva con la clave maestra y registre el agente con ella.',
  'hint.disk_full': 'Libere espacio en disco. Sin él, svcd no puede guardar nada nuevo.',
  'hint.disk_low': 'Libere espacio en disco antes de que se agote.',
  'hint.double_nat':
    'Redirija los puertos UDP de listen_addr y quic_listen_addr en el router exterior hacia el interior, o use uno de los dos como puente.',
  'hint.exit_connecting': 'Espere unos segundos e inténtelo de nuevo.',
  'hint.exit_off': 'Permita UDP saliente o establezca disable_relay = false.',
  'hint.listen_address_lost':
    'El nodo la espera y continúa cuando vuelva. Para usar todas las direcciones, establezca listen_addr en :4121.',
  'hint.exit_proxy': 'Permita UDP saliente para rutas directas y más rápidas.',
  'hint.exit_tls': 'Permita UDP saliente para rutas directas y más rápidas.',
  'hint.few_nodes': 'Con pocos nodos, los registros se guardan pocas veces. Añada nodos bootstrap si puede.',
  'hint.few_replicas': 'Publíquelo: {publish}',
  'hint.key_exposed': 'Ejecute {command}. Sustituya las claves si otro usuario pudo leerlas.',
  'hint.keys_exposed': 'Ejecute {command}. Sustituya las claves si otro usuario pudo leerlas.',
  'hint.loopback_addresses':
    'Además, solo encuentra nodos de esta máquina. Ponga en listen_addr una dirección que no sea de loopback, o defina fallback_host.',
  'hint.mcp_invalid':
    'Consulte la causa en el log de svcd. La configuración para un asistente se muestra con: svcd mcp print',
  'hint.mcp_silent':
    'Consulte la causa en el log de svcd. La configuración para un asistente se muestra con: svcd mcp print',
  'hint.network_joining': 'Espere unos segundos e inténtelo de nuevo.',
  'hint.never_published': 'Publíquelo: {publish}',
  'hint.no_address':
    'Ponga en fallback_host el nombre o la dirección de este nodo, o averigüe por qué ninguna interfaz tiene dirección.',
  'hint.no_agents': 'Cree uno con «svc register».',
  'hint.no_helper':
    'Añada nodos accesibles a bootstrap. O abra en su router los puertos UDP de listen_addr y quic_listen_addr, o ponga en fallback_host la dirección que lleva aquí.',
  'hint.no_node_known':
    'Ejecute «svc invite» en otra máquina con svcd y «svc join <invitation>» aquí, o inicie svcd con --bootstrap y la dirección de un nodo. Los nodos de una misma LAN se encuentran mientras mdns esté activado.',
  'hint.not_found': 'Publíquelo: {publish}',
  'hint.path_mtu':
    'Fije la MTU de la interfaz, la VPN o el router en al menos 1280 bytes, o permita TCP 443 saliente para UDP sobre TLS.',
  'hint.quic_blocked':
    'Un cortafuegos bloquea QUIC. Permita UDP en el puerto de quic_listen_addr. Si está vacío, es el puerto siguiente a listen_addr.',
  'hint.record_expired': 'Publíquelo: {publish}',
  'hint.runs_elsewhere': 'Elimine el agente en el otro nodo o tome el control aquí: {publish}',
  'hint.service_silent': 'Inicie el servicio o vincule otro: {bind}',
  'hint.settings_pending': 'Reinicie svcd para aplicarlo.',
  'hint.started_by_hand': 'Ejecute: svcd service install',
  'hint.tls_port_in_use':
    'Detenga ese programa. Si es un servidor web, haga que pase «/svcd/1» a svcd y asigne a tls_listen una dirección http:// para ello.',
  'hint.tls_port_not_permitted':
    'Ejecute de nuevo «sudo svcd service install», que lo permite, o «sudo sysctl net.ipv4.ip_unprivileged_port_start=443». Si ningún nodo lo necesita, asigne otro puerto a tls_listen.',
  'hint.tls_port_unusable': 'El error está en el registro. Corrija tls_listen.',
  'hint.update_available': 'Ejecute: svc update --confirm',
  'hint.update_rolled_back': 'Funciona la versión anterior. Vuelva a intentarlo con la próxima versión.',
} satisfies FindingWords;
