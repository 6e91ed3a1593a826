/** The nodes through which this node rejoins its network. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { shortAid } from '../../lib/mark.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Answer, Empty, State } from '../../parts/basics.tsx';
import { JoinButtons } from '../../parts/join-buttons.tsx';
import { confirm } from '../../parts/overlay.tsx';

const CONTACTS_MS = 20_000;

type Contact = Output<'contacts'>['contacts'][number];

const TONES = {
  met: 'good',
  untried: 'off',
  unresolved: 'bad',
  ipv6: 'bad',
  silent: 'warn',
  other_key: 'bad',
} as const satisfies Record<Contact['state'], string>;

function Row({ contact, joined, state, addresses }: Contact) {
  const [node = '', address = ''] = contact.includes('@') ? contact.split('@', 2) : ['', contact];
  return (
    <li>
      <span class="grow">
        <code>{address}</code>
        <small class="below">
          {t(joined ? 'contacts.joined' : 'contacts.configured')}
          {addresses.length > 0 && ` · ${addresses.join(', ')}`}
          {node !== '' && (
            <>
              {' · '}
              <code title={node}>{shortAid(node)}</code>
            </>
          )}
        </small>
      </span>
      <State tone={TONES[state]}>{t(`contact.${state}`)}</State>
      {joined && (
        <button
          type="button"
          class="danger"
          aria-label={`${t('contacts.forget')} ${address}`}
          onClick={() =>
            confirm({
              title: t('contacts.forget'),
              text: t('contacts.forget.what'),
              verb: t('contacts.forget'),
              run: () => perform('contactForget', { contact }),
            })
          }
        >
          {t('remove')}
        </button>
      )}
    </li>
  );
}

export function Contacts() {
  const known = useQuery('contacts', { limit: 1000 }, CONTACTS_MS);
  return (
    <>
      <p class="soft">{t('contacts.what')}</p>
      <JoinButtons />
      <Answer of={known}>
        {({ contacts }) =>
          contacts.length === 0 ? (
            <Empty text={t('contacts.none')} />
          ) : (
            <ul class="rows">
              {contacts.map((one) => (
                <Row key={one.contact} {...one} />
              ))}
            </ul>
          )
        }
      </Answer>
    </>
  );
}
