/** German: the findings of the doctor, which the daemon has in English. */
import type { FindingWords } from './daemon-words.ts';

export const deDoctor = {
  'finding.agents_not_checked': 'Nur die ersten {n} Agenten wurden geprüft.',
  'finding.api_is_remote': 'Die API nimmt Verbindungen von anderen Rechnern an. Jeder mit dem Token kann sie benutzen.',
  'finding.cannot_publish_yet': '{name} ist nicht veröffentlicht: Dieser Knoten erreicht keinen anderen Knoten.',
  'finding.check_failed': 'Die Prüfung ist fehlgeschlagen: {error}',
  'finding.clock_ahead': 'Die Uhr dieses Rechners geht {seconds} s vor, verglichen mit {n} Knoten.',
  'finding.clock_behind': 'Die Uhr dieses Rechners geht {seconds} s nach, verglichen mit {n} Knoten.',
  'finding.clock_correct': 'Die Uhr stimmt mit anderen Knoten überein ({n} gefragt).',
  'finding.clock_unknown': 'Noch hat kein anderer Knoten seine Uhrzeit gemeldet.',
  'finding.contact_ipv6': '{contact} hat keine IPv4-Adresse, die das Datensatznetz braucht.',
  'finding.contact_other_key': '{contact} ist ein anderer Knoten: Er weist den Schlüssel vor dem @ nicht nach.',
  'finding.contact_silent': '{contact} antwortet nicht.',
  'finding.contact_unresolved': '{contact} hat keine Adresse: Der Name wird nicht aufgelöst.',
  'finding.data_missing': 'Das Datenverzeichnis {directory} existiert nicht mehr.',
  'finding.data_not_writable': 'Das Datenverzeichnis {directory} ist nicht beschreibbar ({error}).',
  'finding.data_unreadable': 'Die Dateien in {directory} lassen sich nicht prüfen ({error}).',
  'finding.data_writable': 'Das Datenverzeichnis {directory} ist beschreibbar.',
  'finding.database_rolled_back':
    'Die Datenbank hat ihre letzten Änderungen verloren, nach einem Absturz oder weil eine alte Kopie wiederhergestellt wurde. Alle Agenten sind für andere Knoten geschlossen.',
  'finding.delegation_expired': 'Die Delegation von {name} ist {expires_at} abgelaufen.',
  'finding.delegation_expires': 'Die Delegation von {name} läuft {expires_at} ab.',
  'finding.disk_free': '{mebibytes} MiB sind frei für {directory}.',
  'finding.disk_full': 'Nur {mebibytes} MiB sind frei für {directory}.',
  'finding.disk_low': 'Nur {mebibytes} MiB sind frei für {directory}.',
  'finding.double_nat': 'Der Router leitet Ports an diesen Knoten weiter, steht aber hinter einem weiteren Router.',
  'finding.exit_connecting': 'Kein Knoten antwortet über {protocol}, und noch ist kein Helfer über TLS verbunden.',
  'finding.exit_failed': 'Kein Knoten antwortet über {protocol}, und kein Helfer ist über TLS erreichbar.',
  'finding.exit_flows':
    'Dieser Knoten ist über TLS mit dem Helfer {helper} verbunden: Das Netz verwirft UDP-Verbindungen einige Zeit nach ihrem Beginn.',
  'finding.exit_inspected': 'Das Netz entschlüsselt TLS. Verbindungen zwischen Knoten bleiben verschlüsselt.',
  'finding.exit_off': 'Kein Knoten antwortet über {protocol}, und disable_relay schließt TLS aus.',
  'finding.listen_address_lost': 'Dieser Rechner hat die Adresse verloren, die listen_addr nennt.',
  'finding.exit_proxy':
    'Dieser Knoten ist über TLS mit dem Helfer {helper} verbunden, durch den Proxy {proxy}: Kein Knoten antwortet über {protocol}.',
  'finding.exit_tls':
    'Dieser Knoten ist über TLS mit dem Helfer {helper} verbunden: Kein Knoten antwortet über {protocol}.',
  'finding.few_nodes': { one: 'Nur {n} Knoten ist bekannt.', other: 'Nur {n} Knoten sind bekannt.' },
  'finding.few_replicas': {
    one: '{name} wurde {published_at} veröffentlicht, aber nur {n} Knoten hat den Datensatz gespeichert.',
    other: '{name} wurde {published_at} veröffentlicht, aber nur {n} Knoten haben den Datensatz gespeichert.',
  },
  'finding.key_exposed': 'Andere Benutzer dieses Rechners können {file} lesen.',
  'finding.keys_exposed': {
    one: 'Andere Benutzer dieses Rechners können {file} und {n} weitere Datei lesen.',
    other: 'Andere Benutzer dieses Rechners können {file} und {n} weitere Dateien lesen.',
  },
  'finding.keys_private': 'Kein anderer Benutzer dieses Rechners kann die Schlüssel lesen.',
  'finding.local_addresses': 'Dieser Knoten veröffentlicht nur lokale Adressen: {addresses}',
  'finding.loopback_addresses': 'Dieser Knoten veröffentlicht {addresses}: Nur dieser Rechner kann das verwenden.',
  'finding.mcp_invalid':
    'Der MCP-Server unter {url} antwortet mit Status {status}, aber nicht mit einem gültigen Ergebnis.',
  'finding.mcp_silent': 'Der MCP-Server unter {url} antwortet nicht.',
  'finding.mcp_works': 'MCP-Clients können sich mit {url} verbinden.',
  'finding.network_joining': 'Der Knoten tritt dem Netz noch bei.',
  'finding.network_ready': {
    one: 'Das Netz ist bereit, {n} Knoten ist bekannt.',
    other: 'Das Netz ist bereit, {n} Knoten sind bekannt.',
  },
  'finding.network_used': 'Das Netz ist bereit. Peers: {peers}. Knoten, die das Netz über diesen nutzen: {clients}.',
  'finding.never_published': '{name} wurde nie veröffentlicht.',
  'finding.no_address': 'Dieser Knoten hat keine Adresse, die er veröffentlichen kann.',
  'finding.no_agents': 'Kein Agent ist registriert.',
  'finding.no_helper': 'Dieser Knoten ist hinter einem NAT ({nat}), und kein Helfer ist verbunden.',
  'finding.no_node_known': 'Kein anderer Knoten ist bekannt.',
  'finding.no_service': '{name} hat keinen angebundenen Dienst: Er kann aufrufen, aber nicht aufgerufen werden.',
  'finding.not_found': '{name} wurde {published_at} veröffentlicht, aber das Netz findet ihn nicht auf diesem Knoten.',
  'finding.path_mtu':
    'Nur kurze UDP-Pakete kommen durch: Die 1.200 Byte, die QUIC braucht, gehen verloren. Aufrufe und Tunnel funktionieren nicht.',
  'finding.published': {
    one: '{name} wurde {published_at} veröffentlicht und ist auf {n} Knoten gespeichert.',
    other: '{name} wurde {published_at} veröffentlicht und ist auf {n} Knoten gespeichert.',
  },
  'finding.quic_blocked': {
    one: '{n} Knoten antwortet im Datensatznetz, aber nicht über QUIC: Aufrufe und Tunnel funktionieren nicht.',
    other: '{n} Knoten antworten im Datensatznetz, aber keiner über QUIC: Aufrufe und Tunnel funktionieren nicht.',
  },
  'finding.quic_works': 'Knoten antworten über QUIC ({reached} von {dialed}).',
  'finding.reachability_unknown': 'Noch ist nicht bekannt, ob Fremde diesen Knoten erreichen können.',
  'finding.reachable': 'Fremde können diesen Knoten erreichen.',
  'finding.reached_by_helpers': 'Andere erreichen diesen Knoten über {helpers} (NAT: {nat}).',
  'finding.record_expired':
    '{name} ist nicht zu finden: Er wurde {published_at} veröffentlicht, und der Datensatz ist abgelaufen.',
  'finding.runs_elsewhere':
    '{name} läuft auch auf einem anderen Knoten: Das Netz hat Nummer {network}, dieser Knoten hat Nummer {own} veröffentlicht.',
  'finding.service_answers': 'Der Dienst von {name} antwortet unter {address}.',
  'finding.service_silent': 'Der Dienst von {name} antwortet nicht unter {address}{reason}.',
  'finding.settings_overridden': 'Durch eine Option oder die Umgebung gesetzt, nicht in config.toml: {keys}',
  'finding.settings_pending': 'Geändert, aber noch nicht übernommen: {keys}',
  'finding.started_by_hand': 'svcd wurde von Hand gestartet: Es startet nicht mit dem Rechner.',
  'finding.svcd_version': 'svcd {version} läuft mit Node {node}.',
  'finding.system_service': 'svcd läuft als Systemdienst: Es startet mit dem Rechner.',
  'finding.tls_port_in_use':
    'Knoten ohne UDP können sich nicht über {address}/tcp verbinden: Ein anderes Programm verwendet den Port.',
  'finding.tls_port_not_permitted':
    'Knoten ohne UDP können sich nicht über {address}/tcp verbinden: Das System erlaubt keine Ports unter 1024.',
  'finding.tls_port_unusable':
    'Knoten ohne UDP können sich nicht über {address}/tcp verbinden: Der Port lässt sich nicht öffnen.',
  'finding.update_available': 'svcd {latest} ist verfügbar, installiert ist {current}.',
  'finding.update_check_failed': 'Die letzte Suche nach Updates ist fehlgeschlagen{reason}.',
  'finding.update_rolled_back': 'Das letzte Update wurde zurückgesetzt{reason}.',
  'hint.cannot_publish_yet': 'svcd veröffentlicht ihn, sobald ein anderer Knoten erreichbar ist.',
  'hint.check_failed': 'Die Ursache steht im Log von svcd.',
  'hint.clock_ahead':
    'Stellen Sie die Uhr und schalten Sie NTP ein. Andere Knoten lehnen Datensätze mit falscher Zeit ab.',
  'hint.clock_behind':
    'Stellen Sie die Uhr und schalten Sie NTP ein. Andere Knoten lehnen Datensätze mit falscher Zeit ab.',
  'hint.contact_ipv6': 'Verwenden Sie einen Host mit IPv4-Adresse, oder fügen Sie seinem Namen einen A-Eintrag hinzu.',
  'hint.contact_other_key':
    'Bitten Sie seinen Besitzer um eine neue Einladung. Entfernen Sie den Kontakt mit „svc contacts rm <contact>“ oder aus bootstrap.',
  'hint.contact_silent': 'Prüfen Sie, ob svcd dort läuft, ob sein UDP-Port offen ist und ob der Netzname gleich ist.',
  'hint.contact_unresolved': 'Prüfen Sie den Namen und das DNS dieses Rechners, oder entfernen Sie ihn aus bootstrap.',
  'hint.data_missing':
    'Beenden Sie svcd, stellen Sie das Verzeichnis aus einer Sicherung wieder her und starten Sie svcd neu. Was svcd jetzt speichert, geht beim Beenden verloren.',
  'hint.data_not_writable':
    'Machen Sie es für seinen Besitzer beschreibbar, schaffen Sie Speicherplatz, oder hängen Sie es mit Schreibrecht ein.',
  'hint.data_unreadable': 'Erlauben Sie dem Benutzer, unter dem svcd läuft, sie zu lesen.',
  'hint.database_rolled_back':
    'Prüfen Sie die Zugriffslisten, stellen Sie eine Sicherung wieder her, wenn etwas fehlt, und führen Sie dann „svc access confirm“ aus.',
  'hint.delegation_expired':
    'Stellen Sie mit dem Hauptschlüssel eine neue Delegation aus und registrieren Sie den Agenten damit.',
  'hint.delegation_expires':
    'Stellen Sie mit dem Hauptschlüssel eine neue Delegation aus und registrieren Sie den Agenten damit.',
  'hint.disk_full': 'Schaffen Sie Speicherplatz. Ohne ihn kann svcd nichts Neues speichern.',
  'hint.disk_low': 'Schaffen Sie Speicherplatz, bevor er ausgeht.',
  'hint.double_nat':
    'Leiten Sie die UDP-Ports von listen_addr und quic_listen_addr am äußeren Router an den inneren weiter, oder betreiben Sie einen von beiden als Bridge.',
  'hint.exit_connecting': 'Warten Sie einige Sekunden, und versuchen Sie es erneut.',
  'hint.exit_off': 'Erlauben Sie ausgehendes UDP, oder setzen Sie disable_relay = false.',
  'hint.listen_address_lost':
    'Der Knoten wartet auf sie und arbeitet weiter, sobald sie zurückkehrt. Um alle Adressen zu verwenden, setzen Sie listen_addr auf :4121.',
  'hint.exit_proxy': 'Erlauben Sie ausgehendes UDP für direkte und schnellere Pfade.',
  'hint.exit_tls': 'Erlauben Sie ausgehendes UDP für direkte und schnellere Pfade.',
  'hint.few_nodes':
    'Mit wenigen Knoten werden Datensätze nur wenige Male gespeichert. Fügen Sie wenn möglich Bootstrap-Knoten hinzu.',
  'hint.few_replicas': 'Veröffentlichen Sie ihn: {publish}',
  'hint.key_exposed':
    'Führen Sie {command} aus. Ersetzen Sie die Schlüssel, wenn ein anderer Benutzer sie gelesen haben kann.',
  'hint.keys_exposed':
    'Führen Sie {command} aus. Ersetzen Sie die Schlüssel, wenn ein anderer Benutzer sie gelesen haben kann.',
  'hint.loopback_addresses':
    'Er findet auch nur Knoten auf diesem Rechner. Setzen Sie listen_addr auf eine Adresse, die nicht loopback ist, oder setzen Sie fallback_host.',
  'hint.mcp_invalid':
    'Die Ursache steht im Log von svcd. Die Konfiguration für einen Assistenten zeigt: svcd mcp print',
  'hint.mcp_silent': 'Die Ursache steht im Log von svcd. Die Konfiguration für einen Assistenten zeigt: svcd mcp print',
  'hint.network_joining': 'Warten Sie einige Sekunden, und versuchen Sie es erneut.',
  'hint.never_published': 'Veröffentlichen Sie ihn: {publish}',
  'hint.no_address':
    'Setzen Sie fallback_host auf den Namen oder die Adresse dieses Knotens, oder finden Sie heraus, warum keine Schnittstelle eine Adresse hat.',
  'hint.no_agents': 'Erstellen Sie einen mit „svc register“.',
  'hint.no_helper':
    'Fügen Sie bootstrap erreichbare Knoten hinzu. Oder öffnen Sie die UDP-Ports von listen_addr und quic_listen_addr an Ihrem Router, oder setzen Sie fallback_host auf die Adresse, die hierher führt.',
  'hint.no_node_known':
    'Führen Sie auf einem anderen Rechner mit svcd „svc invite“ aus und hier „svc join <invitation>“, oder starten Sie svcd mit --bootstrap und der Adresse eines Knotens. Knoten in einem LAN finden einander, solange mdns an ist.',
  'hint.not_found': 'Veröffentlichen Sie ihn: {publish}',
  'hint.path_mtu':
    'Stellen Sie die MTU von Netzwerkschnittstelle, VPN oder Router auf mindestens 1.280 Byte, oder erlauben Sie ausgehendes TCP 443 für UDP über TLS.',
  'hint.quic_blocked':
    'Eine Firewall blockiert QUIC. Erlauben Sie UDP auf dem Port von quic_listen_addr. Ist es leer, ist das der Port nach listen_addr.',
  'hint.record_expired': 'Veröffentlichen Sie ihn: {publish}',
  'hint.runs_elsewhere': 'Löschen Sie den Agenten auf dem anderen Knoten, oder übernehmen Sie ihn hier: {publish}',
  'hint.service_silent': 'Starten Sie den Dienst, oder binden Sie einen anderen an: {bind}',
  'hint.settings_pending': 'Starten Sie svcd neu, um sie zu übernehmen.',
  'hint.started_by_hand': 'Führen Sie aus: svcd service install',
  'hint.tls_port_in_use':
    'Beenden Sie dieses Programm. Ist es ein Webserver, lassen Sie ihn „/svcd/1“ an svcd weiterleiten, und setzen Sie tls_listen auf eine http://-Adresse dafür.',
  'hint.tls_port_not_permitted':
    'Führen Sie noch einmal „sudo svcd service install“ aus, das es erlaubt, oder „sudo sysctl net.ipv4.ip_unprivileged_port_start=443“. Braucht ihn kein Knoten, setzen Sie tls_listen auf einen anderen Port.',
  'hint.tls_port_unusable': 'Der Fehler steht im Log. Korrigieren Sie tls_listen.',
  'hint.update_available': 'Führen Sie aus: svc update --confirm',
  'hint.update_rolled_back': 'Die vorige Version läuft. Versuchen Sie es mit der nächsten Version wieder.',
} satisfies FindingWords;
