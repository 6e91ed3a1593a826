/** How programs use an agent: texts to copy. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { here } from '../../lib/place.ts';
import { useQuery } from '../../lib/query.ts';
import { Answer, Copy, Empty, Section, State } from '../../parts/basics.tsx';

function Text({ title, text, note }: { readonly title: string; readonly text: string; readonly note: string }) {
  return (
    <Section title={title} note={<Copy text={text} />}>
      <p class="soft">{note}</p>
      <pre>{text}</pre>
    </Section>
  );
}

/** The MCP clients on this machine, and the commands that configure svcd in them. */
function Hosts() {
  const known = useQuery('mcpHosts', {});
  return (
    <Section title={t('use.hosts')}>
      <Answer of={known}>
        {({ hosts }) => {
          const found = hosts.filter(({ is_here }) => is_here);
          if (found.length === 0) return <Empty text={t('use.hosts.none')} />;
          return (
            <ul class="rows">
              {found.map(({ name, title, file, has_svcd }) => (
                <li key={name}>
                  <span class="grow">
                    <b>{title}</b>
                    <small class="below">
                      <code>{file}</code>
                    </small>
                  </span>
                  <State tone={has_svcd === true ? 'good' : 'off'}>
                    {t(has_svcd === null ? 'use.hosts.unread' : has_svcd ? 'use.hosts.has' : 'use.hosts.not')}
                  </State>
                  {has_svcd !== true && (
                    <span class="pair">
                      <code>svcd mcp add {name}</code> <Copy text={`svcd mcp add ${name}`} />
                    </span>
                  )}
                </li>
              ))}
            </ul>
          );
        }}
      </Answer>
    </Section>
  );
}

export function UseIt({ agent: { aid } }: { readonly agent: Output<'agentGet'> }) {
  const { origin } = location;
  const mcp = JSON.stringify({ mcpServers: { svcd: { type: 'http', url: `${origin}/mcp` } } }, null, 2);
  return (
    <>
      {here().node === null && <Hosts />}
      <Text title="MCP" note={t('use.mcp')} text={mcp} />
      <Text title={t('use.gateway')} note={t('use.gateway.what')} text={`${origin}/aid/${aid}/`} />
      <Text title="curl" note={t('use.curl')} text={`curl ${origin}/aid/${aid}/`} />
      <Text title={t('use.shell')} note={t('use.shell.what')} text={`svc get ${aid} /\nsvc tunnel open ${aid}`} />
      <Text title={t('use.share')} note={t('use.share.what')} text={aid} />
    </>
  );
}
