/** The access list of an agent. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { AccessLists } from '../../parts/access-list.tsx';
import { Answer, Section } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';
import { Callers } from './callers.tsx';
import { TAIL_CHARS } from './overview.tsx';

/** What callers without an entry may do. */
const NOW = { public: 'acl.public.now', deny: 'acl.named.now', ask: 'acl.ask.now' } as const;

export function Access({ agent }: { readonly agent: Output<'agentGet'> }) {
  const { aid } = agent;
  const acl = useQuery('aclGet', { aid });
  const setPublic = (): void =>
    confirm({
      title: t('acl.public'),
      text: t('acl.public.what'),
      verb: t('acl.open'),
      tail: aid.slice(-TAIL_CHARS),
      run: () => perform('aclPatch', { aid, default: 'public' }),
    });
  return (
    <Answer of={acl}>
      {({ default: policy, allow, deny }) => (
        <>
          <Section title={t('agent.callers')}>
            <p class="empty">{t(NOW[policy])}</p>
            {policy === 'public' ? (
              <button
                type="button"
                onClick={() => act(() => perform('aclPatch', { aid, default: 'deny' }), t('saved'))}
              >
                {t('acl.close')}
              </button>
            ) : (
              <button type="button" onClick={setPublic}>
                {t('acl.open')}
              </button>
            )}
            {policy !== 'ask' && (
              <>
                {' '}
                <button
                  type="button"
                  onClick={() => act(() => perform('aclPatch', { aid, default: 'ask' }), t('saved'))}
                >
                  {t('acl.ask')}
                </button>
              </>
            )}
          </Section>
          <AccessLists
            of={aid}
            allow={allow}
            deny={deny}
            note={t(policy === 'public' ? 'acl.public' : 'acl.named', { n: allow.length })}
            add={({ aid: body_aid, ...entry }) =>
              perform('aclAllow', { aid, ...entry, ...(body_aid === undefined ? {} : { body_aid }) })
            }
            refuse={(body_aid) => perform('aclDeny', { aid, body_aid })}
            removeAllow={(id) => perform('aclAllowDelete', { aid, id })}
            removeDeny={(id) => perform('aclDenyDelete', { aid, id })}
          />
          <Callers agent={agent} />
        </>
      )}
    </Answer>
  );
}
