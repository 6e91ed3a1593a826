/** Callers that ask for access to the agents of this node. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Called, Inline } from '../../parts/agent.tsx';
import { T, UntrustedText } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';

type Request = Output<'accessRequests'>['requests'][number];

/** Most requests to show. */
const SHOWN = 5;

function Buttons({ id }: { readonly id: string }) {
  return (
    <span class="pair">
      <button
        type="button"
        class="main"
        onClick={() => act(() => perform('accessRequestAllow', { id, once: true }), t('saved'))}
      >
        {t('access.once')}
      </button>{' '}
      <button type="button" onClick={() => act(() => perform('accessRequestAllow', { id }), t('saved'))}>
        {t('access.allow')}
      </button>{' '}
      <button
        type="button"
        onClick={() =>
          confirm({
            title: t('access.refuse'),
            text: t('access.refuse.what'),
            verb: t('access.refuse'),
            run: () => perform('accessRequestRefuse', { id }),
          })
        }
      >
        {t('access.refuse')}
      </button>
    </span>
  );
}

function Row({ id, aid, caller, kind, asked, tool, note }: Request) {
  return (
    <li>
      <b class="hue" aria-hidden="true">
        ?
      </b>
      <span class="grow">
        <Inline aid={caller} />{' '}
        <T k={kind === 'tunnel' ? 'waiting.tunnel' : 'waiting.call'} agent={<Called aid={aid} />} />{' '}
        <span class="soft">
          <UntrustedText text={[asked, tool ?? ''].filter((part) => part !== '').join(' · ')} />
          {note !== '' && (
            <>
              {' “'}
              <UntrustedText text={note} />”
            </>
          )}
        </span>
      </span>
      <Buttons id={id} />
    </li>
  );
}

/** Pending requests, without chat requests, which have rows of their own. */
export function AccessRequests() {
  const { value } = useQuery('accessRequests', {});
  const pending = (value?.requests ?? []).filter(({ kind, state }) => kind !== 'chat' && state === 'pending');
  return (
    <>
      {pending.slice(0, SHOWN).map((request) => (
        <Row key={request.id} {...request} />
      ))}
    </>
  );
}
