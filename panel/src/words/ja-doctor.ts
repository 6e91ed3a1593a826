/** Japanese: the findings of the doctor, which the daemon has in English. */
import type { FindingWords } from './daemon-words.ts';

export const jaDoctor = {
  'finding.agents_not_checked': '最初の {n} 個のエージェントだけを診断しました。',
  'finding.api_is_remote': 'API は他のマシンからの接続を受け付けます。トークンがあれば誰でも使えます。',
  'finding.cannot_publish_yet': '{name} は未公開です。このノードから他のノードに到達できません。',
  'finding.check_failed': '診断に失敗しました：{error}',
  'finding.clock_ahead': 'このマシンの時計は {n} 個のノードより {seconds} 秒進んでいます。',
  'finding.clock_behind': 'このマシンの時計は {n} 個のノードより {seconds} 秒遅れています。',
  'finding.clock_correct': '時計は他のノードと一致しています（{n} 個に確認）。',
  'finding.clock_unknown': '時計を報告したノードはまだありません。',
  'finding.contact_ipv6': '{contact} に IPv4 アドレスがありません。レコードネットワークには IPv4 が必要です。',
  'finding.contact_other_key': '{contact} は別のノードです。@ の前の鍵を証明しません。',
  'finding.contact_silent': '{contact} が応答しません。',
  'finding.contact_unresolved': '{contact} の名前を解決できません。',
  'finding.data_missing': 'データディレクトリ {directory} がなくなっています。',
  'finding.data_not_writable': 'データディレクトリ {directory} に書き込めません（{error}）。',
  'finding.data_unreadable': '{directory} のファイルを確認できません（{error}）。',
  'finding.data_writable': 'データディレクトリ {directory} に書き込めます。',
  'finding.database_rolled_back':
    'クラッシュか古いコピーの復元により、データベースの最新の変更が失われました。すべてのエージェントは他のノードに公開されていません。',
  'finding.delegation_expired': '{name} の委任は{expires_at}に失効しました。',
  'finding.delegation_expires': '{name} の委任は{expires_at}に失効します。',
  'finding.disk_free': '{directory} の空きは {mebibytes} MiB です。',
  'finding.disk_full': '{directory} の空きは {mebibytes} MiB しかありません。',
  'finding.disk_low': '{directory} の空きは {mebibytes} MiB しかありません。',
  'finding.double_nat': 'ルーターはこのノードにポートを転送していますが、別のルーターの内側にあります。',
  'finding.exit_connecting': '{protocol} で応答するノードがなく、TLS でもまだヘルパーに接続していません。',
  'finding.exit_failed': '{protocol} で応答するノードがなく、TLS でもヘルパーに到達できません。',
  'finding.exit_flows':
    'このノードはヘルパー {helper} に TLS で接続しています。ネットワークが UDP の通信を開始からしばらくして破棄するためです。',
  'finding.exit_inspected': 'ネットワークが TLS を復号しています。ノード間の接続は暗号化されたままです。',
  'finding.exit_off': '{protocol} で応答するノードがなく、disable_relay により TLS も使えません。',
  'finding.listen_address_lost': 'このマシンは listen_addr が指定するアドレスを失いました。',
  'finding.exit_proxy':
    'このノードは、プロキシ {proxy} を通り、TLS でヘルパー {helper} に接続しています。{protocol} で応答するノードがないためです。',
  'finding.exit_tls':
    'このノードは TLS でヘルパー {helper} に接続しています。{protocol} で応答するノードがないためです。',
  'finding.few_nodes': { other: '把握しているノードは {n} 個だけです。' },
  'finding.few_replicas': { other: '{name} は{published_at}に公開されましたが、保存したノードは {n} 個だけです。' },
  'finding.key_exposed': 'このマシンの他のユーザーが {file} を読めます。',
  'finding.keys_exposed': { other: 'このマシンの他のユーザーが {file} と他 {n} 件のファイルを読めます。' },
  'finding.keys_private': 'このマシンの他のユーザーは鍵を読めません。',
  'finding.local_addresses': 'このノードはローカルアドレスだけを公開しています：{addresses}',
  'finding.loopback_addresses': 'このノードは {addresses} を公開していますが、使えるのはこのマシンだけです。',
  'finding.mcp_invalid': '{url} の MCP サーバーがステータス {status} を返しましたが、結果が無効です。',
  'finding.mcp_silent': '{url} の MCP サーバーが応答しません。',
  'finding.mcp_works': 'MCP クライアントは {url} に接続できます。',
  'finding.network_joining': 'まだネットワークに参加中です。',
  'finding.network_ready': { other: 'ネットワークは利用可能です。{n} 個のノードを把握しています。' },
  'finding.network_used': 'ネットワークは利用可能です。ピア：{peers}、このノードを経由するノード：{clients}。',
  'finding.never_published': '{name} は一度も公開されていません。',
  'finding.no_address': 'このノードには公開できるアドレスがありません。',
  'finding.no_agents': '登録されたエージェントはありません。',
  'finding.no_helper': 'このノードは NAT の内側にあり（{nat}）、ヘルパーに接続していません。',
  'finding.no_node_known': '他のノードを把握していません。',
  'finding.no_service':
    '{name} にサービスがバインドされていません。呼び出しはできますが、他のエージェントからは呼び出せません。',
  'finding.not_found': '{name} は{published_at}に公開されましたが、ネットワークではこのノードに見つかりません。',
  'finding.path_mtu':
    '短い UDP パケットしか通りません。QUIC に必要な 1,200 バイトは失われるため、呼び出しとトンネルは使えません。',
  'finding.published': { other: '{name} は{published_at}に公開され、{n} 個のノードに保存されています。' },
  'finding.quic_blocked': {
    other:
      '{n} 個のノードがレコードネットワークで応答しますが、QUIC では応答しません。呼び出しとトンネルは使えません。',
  },
  'finding.quic_works': 'ノードは QUIC で応答します（{dialed} 個中 {reached} 個）。',
  'finding.reachability_unknown': '未知のノードから到達できるかどうかは、まだわかりません。',
  'finding.reachable': '未知のノードから到達できます。',
  'finding.reached_by_helpers': '他のノードは {helpers} を経由してこのノードに到達します（NAT：{nat}）。',
  'finding.record_expired': '{name} は見つかりません。{published_at}に公開されましたが、レコードが期限切れです。',
  'finding.runs_elsewhere':
    '{name} は別のノードでも動いています。ネットワークの番号は {network}、このノードが公開した番号は {own} です。',
  'finding.service_answers': '{name} のサービスは {address} で応答しています。',
  'finding.service_silent': '{name} のサービスが {address} で応答しません{reason}。',
  'finding.settings_overridden': 'config.toml ではなく、オプションか環境変数で設定されています：{keys}',
  'finding.settings_pending': '変更されましたが、まだ適用されていません：{keys}',
  'finding.started_by_hand': 'svcd は手動で起動されています。マシンの起動時には起動しません。',
  'finding.svcd_version': 'svcd {version}（Node {node}）が動作しています。',
  'finding.system_service': 'svcd はシステムサービスとして動作し、マシンの起動時に起動します。',
  'finding.tls_port_in_use':
    'UDP を使えないノードは {address}/tcp に接続できません。別のプログラムがこのポートを使っています。',
  'finding.tls_port_not_permitted':
    'UDP を使えないノードは {address}/tcp に接続できません。システムが 1024 未満のポートを許可していません。',
  'finding.tls_port_unusable': 'UDP を使えないノードは {address}/tcp に接続できません。ポートを開けません。',
  'finding.update_available': 'svcd {latest} が利用できます（現在は {current}）。',
  'finding.update_check_failed': '前回の更新の確認に失敗しました{reason}。',
  'finding.update_rolled_back': '前回の更新はロールバックされました{reason}。',
  'hint.cannot_publish_yet': '他のノードに到達できるようになると、svcd が公開します。',
  'hint.check_failed': '原因は svcd のログを確認してください。',
  'hint.clock_ahead': '時計を合わせ、NTP を有効にしてください。他のノードは時刻の誤ったレコードを拒否します。',
  'hint.clock_behind': '時計を合わせ、NTP を有効にしてください。他のノードは時刻の誤ったレコードを拒否します。',
  'hint.contact_ipv6': 'IPv4 アドレスのあるホストを使うか、名前に A レコードを追加してください。',
  'hint.contact_other_key':
    '所有者に新しい招待を依頼してください。この連絡先は「svc contacts rm <contact>」か bootstrap から削除できます。',
  'hint.contact_silent':
    'そこで svcd が動いているか、UDP ポートが開いているか、ネットワーク名が同じかを確認してください。',
  'hint.contact_unresolved': '名前とこのマシンの DNS を確認するか、bootstrap から削除してください。',
  'hint.data_missing':
    'svcd を停止し、バックアップからディレクトリを復元して、再び起動してください。今 svcd が保存するデータは停止時に失われます。',
  'hint.data_not_writable':
    '所有者に書き込みを許可するか、ディスクの空きを増やすか、書き込み可能でマウントしてください。',
  'hint.data_unreadable': 'svcd を実行するユーザーに読み取りを許可してください。',
  'hint.database_rolled_back':
    'アクセスリストを確認し、不足があればバックアップを復元してから「svc access confirm」を実行してください。',
  'hint.delegation_expired': 'マスター鍵で新しい委任を発行し、エージェントを登録してください。',
  'hint.delegation_expires': 'マスター鍵で新しい委任を発行し、エージェントを登録してください。',
  'hint.disk_full': '空きを増やしてください。空きがないと、svcd は新しいデータを保存できません。',
  'hint.disk_low': 'なくなる前に空きを増やしてください。',
  'hint.double_nat':
    '外側のルーターで listen_addr と quic_listen_addr の UDP ポートを内側に転送するか、一方をブリッジにしてください。',
  'hint.exit_connecting': '数秒待ってから、もう一度お試しください。',
  'hint.exit_off': '外向きの UDP を許可するか、disable_relay = false を設定してください。',
  'hint.listen_address_lost':
    'ノードはそのアドレスを待ち、戻り次第続行します。すべてのアドレスを使うには、listen_addr を :4121 に設定してください。',
  'hint.exit_proxy': '直接でより速い経路のために、外向きの UDP を許可してください。',
  'hint.exit_tls': '直接でより速い経路のために、外向きの UDP を許可してください。',
  'hint.few_nodes':
    'ノードが少ないと、レコードの保存先も少なくなります。可能ならブートストラップノードを追加してください。',
  'hint.few_replicas': '公開してください：{publish}',
  'hint.key_exposed': '{command} を実行してください。他のユーザーに読まれた可能性があれば、鍵を置き換えてください。',
  'hint.keys_exposed': '{command} を実行してください。他のユーザーに読まれた可能性があれば、鍵を置き換えてください。',
  'hint.loopback_addresses':
    '見つけられるノードもこのマシンのものだけです。listen_addr にループバック以外のアドレスを設定するか、fallback_host を設定してください。',
  'hint.mcp_invalid': '原因は svcd のログを確認してください。アシスタント用の設定は svcd mcp print で表示できます。',
  'hint.mcp_silent': '原因は svcd のログを確認してください。アシスタント用の設定は svcd mcp print で表示できます。',
  'hint.network_joining': '数秒待ってから、もう一度お試しください。',
  'hint.never_published': '公開してください：{publish}',
  'hint.no_address':
    'fallback_host にこのノードの名前かアドレスを設定するか、インターフェースにアドレスがない原因を調べてください。',
  'hint.no_agents': '「svc register」で作成してください。',
  'hint.no_helper':
    '到達可能なノードを bootstrap に追加してください。または、ルーターで listen_addr と quic_listen_addr の UDP ポートを開くか、ここに届くアドレスを fallback_host に設定してください。',
  'hint.no_node_known':
    'svcd のある別のマシンで「svc invite」、ここで「svc join <invitation>」を実行するか、--bootstrap とノードのアドレスを付けて svcd を起動してください。同じ LAN のノードは、mdns が有効なら互いに見つかります。',
  'hint.not_found': '公開してください：{publish}',
  'hint.path_mtu':
    'ネットワークインターフェース、VPN、ルーターの MTU を 1,280 バイト以上にするか、UDP over TLS のために TCP 443 の送信を許可してください。',
  'hint.quic_blocked':
    'ファイアウォールが QUIC を遮断しています。quic_listen_addr のポートで UDP を許可してください。空欄の場合は listen_addr の次のポートです。',
  'hint.record_expired': '公開してください：{publish}',
  'hint.runs_elsewhere': '別のノードでエージェントを削除するか、ここで引き継いでください：{publish}',
  'hint.service_silent': 'サービスを起動するか、別のサービスをバインドしてください：{bind}',
  'hint.settings_pending': '適用するには svcd を再起動してください。',
  'hint.started_by_hand': '次を実行してください：svcd service install',
  'hint.tls_port_in_use':
    'そのプログラムを停止してください。Web サーバーの場合は「/svcd/1」を svcd に渡すようにし、そのための http:// アドレスを tls_listen に設定してください。',
  'hint.tls_port_not_permitted':
    '許可を与える「sudo svcd service install」をもう一度実行するか、「sudo sysctl net.ipv4.ip_unprivileged_port_start=443」を実行してください。必要とするノードがなければ、tls_listen に別のポートを設定してください。',
  'hint.tls_port_unusable': 'エラーはログにあります。tls_listen を修正してください。',
  'hint.update_available': '次を実行してください：svc update --confirm',
  'hint.update_rolled_back': '以前のバージョンが動作しています。次のバージョンで再度お試しください。',
} satisfies FindingWords;
