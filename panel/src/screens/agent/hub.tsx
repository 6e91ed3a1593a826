/** The MCP hub: the tools of other agents for an agent, and the definitions that wait for the owner. */
import { useState } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { diffLines, linesOf } from '../../lib/diff.ts';
import { t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Inline, Who } from '../../parts/agent.tsx';
import { AidField } from '../../parts/aid-field.tsx';
import { Answer, Copy, Empty, Section, State, UntrustedText, When } from '../../parts/basics.tsx';
import { Form } from '../../parts/form.tsx';
import { act, confirm } from '../../parts/overlay.tsx';
import { type Column, Table } from '../../parts/table.tsx';

type Source = Output<'hubSources'>['sources'][number];
type Change = Output<'hubChanges'>['changes'][number];

const HUB_MS = 20_000;
/** Changes on the page. Others follow when these are decided. */
const SHOWN = 20;

const TONES = { new: 'off', ok: 'good', away: 'warn', denied: 'bad', none: 'off' } as const;
/** The parts of a definition, in their order. */
const PARTS = ['title', 'description', 'input_schema', 'output_schema', 'annotations'] as const;

const columns = (local_aid: string): readonly Column<Source>[] => [
  { title: t('agent'), cell: ({ aid, origin }) => <Who aid={aid}>{t(`hub.${origin}`)}</Who> },
  { title: t('state'), cell: ({ state }) => <State tone={TONES[state]}>{t(`hubstate.${state}`)}</State> },
  { title: t('hub.tools'), isNumber: true, cell: ({ tools }) => tools },
  { title: t('hub.held'), isNumber: true, cell: ({ changed, unaccepted }) => changed + unaccepted },
  {
    title: '',
    cell: ({ aid }) => (
      <button
        type="button"
        class="danger"
        onClick={() =>
          confirm({
            title: t('hub.remove'),
            text: t('hub.remove.what'),
            verb: t('hub.remove'),
            run: () => perform('hubRemove', { aid, local_aid }),
          })
        }
      >
        {t('remove')}
      </button>
    ),
  },
];

/** One part of a definition: removed and added lines. Their agent wrote them. */
function Part({ change, part }: { readonly change: Change; readonly part: (typeof PARTS)[number] }) {
  const lines = diffLines(linesOf(change.before?.[part]), linesOf(change.after[part]));
  if (lines.length === 0 || (change.before !== null && lines.every(({ side }) => side === 0))) return null;
  return (
    <>
      <h4>{t(`hubpart.${part}`)}</h4>
      <pre class="diff">
        {lines.map(({ side, text }, i) => {
          const shown = <UntrustedText text={text} />;
          if (side === 0 || change.before === null) return <span key={i}>{shown}</span>;
          return side < 0 ? <del key={i}>{shown}</del> : <ins key={i}>{shown}</ins>;
        })}
      </pre>
    </>
  );
}

function Waiting({ change, local_aid }: { readonly change: Change; readonly local_aid: string }) {
  const { id, aid, tool, at, before } = change;
  return (
    <article>
      <h3>
        <UntrustedText text={tool} />
      </h3>
      <p class="soft">
        <Inline aid={aid} /> · {t(before === null ? 'hub.new' : 'hub.changed')} · <When at={at} ago />
      </p>
      {PARTS.map((part) => (
        <Part key={part} change={change} part={part} />
      ))}
      <div class="acts">
        <button
          type="button"
          onClick={() => act(() => perform('hubRefuse', { id, local_aid }), t('saved'))}
          aria-label={`${t('hub.refuse')} ${tool}`}
        >
          {t('hub.refuse')}
        </button>
        <button
          type="button"
          class="main"
          onClick={() => act(() => perform('hubAccept', { id, local_aid }), t('saved'))}
          aria-label={`${t('hub.accept')} ${tool}`}
        >
          {t('hub.accept')}
        </button>
      </div>
    </article>
  );
}

function Changes({ local_aid }: { readonly local_aid: string }) {
  const known = useQuery('hubChanges', { local_aid, limit: SHOWN }, HUB_MS);
  return (
    <Section title={t('hub.changes')}>
      <Answer of={known}>
        {({ changes, next_cursor }) =>
          changes.length === 0 ? (
            <Empty text={t('hub.changes.none')} />
          ) : (
            <>
              <p class="soft">{t('hub.changes.what')}</p>
              {changes.map((change) => (
                <Waiting key={change.id} change={change} local_aid={local_aid} />
              ))}
              {next_cursor !== undefined && <p class="soft">{t('hub.more')}</p>}
            </>
          )
        }
      </Answer>
    </Section>
  );
}

function Add({ local_aid }: { readonly local_aid: string }) {
  const [aid, setAid] = useState('');
  return (
    <Form
      class="one"
      fields={['aid']}
      verb={t('hub.add')}
      run={() => perform('hubAdd', { aid, local_aid })}
      done={t('saved')}
      close={() => setAid('')}
      isReady={aid !== ''}
    >
      <AidField label={t('agent')} value={aid} onInput={setAid} />
      <p class="soft">{t('hub.add.what')}</p>
    </Form>
  );
}

export function HubPage({ aid }: { readonly aid: string }) {
  const known = useQuery('hubSources', { local_aid: aid }, HUB_MS);
  const url = `${location.origin}/mcp/hub?local_aid=${aid}`;
  return (
    <>
      <Section title={t('hub.title')} note={<Copy text={url} label={t('hub.copy')} />}>
        <p class="soft">{t('hub.what')}</p>
        <Answer of={known}>
          {({ sources }) => {
            const shown = sources.filter(({ origin }) => origin !== 'removed');
            if (shown.length === 0) return <Empty text={t('hub.none')} />;
            return <Table label={t('hub.title')} rows={shown} columns={columns(aid)} keyOf={(one) => one.aid} />;
          }}
        </Answer>
        <Add local_aid={aid} />
      </Section>
      <Changes local_aid={aid} />
    </>
  );
}
