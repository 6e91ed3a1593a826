/** How programs use an agent: texts to copy. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { Copy, Section } from '../../parts/basics.tsx';

function Text({ title, text, note }: { readonly title: string; readonly text: string; readonly note: string }) {
  return (
    <Section title={title} note={<Copy text={text} />}>
      <p class="soft">{note}</p>
      <pre>{text}</pre>
    </Section>
  );
}

export function UseIt({ agent: { aid } }: { readonly agent: Output<'agentGet'> }) {
  const { origin } = location;
  const mcp = JSON.stringify({ mcpServers: { svcd: { type: 'http', url: `${origin}/mcp` } } }, null, 2);
  return (
    <>
      <Text title="MCP" note={t('use.mcp')} text={mcp} />
      <Text title={t('use.gateway')} note={t('use.gateway.what')} text={`${origin}/aid/${aid}/`} />
      <Text title="curl" note={t('use.curl')} text={`curl ${origin}/aid/${aid}/`} />
      <Text title={t('use.shell')} note={t('use.shell.what')} text={`svc get ${aid} /\nsvc tunnel open ${aid}`} />
      <Text title={t('use.share')} note={t('use.share.what')} text={aid} />
    </>
  );
}
