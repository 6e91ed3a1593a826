/** What an agent offers. */
import { useState } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { listOf } from '../../lib/lists.ts';
import { perform } from '../../lib/query.ts';
import { Empty, Field, Section } from '../../parts/basics.tsx';
import { act, actLater } from '../../parts/overlay.tsx';

export function Services({ agent: { aid, services } }: { readonly agent: Output<'agentGet'> }) {
  const [names, setNames] = useState('');
  const [brief, setBrief] = useState('');
  const [tags, setTags] = useState('');
  const offer = async (): Promise<void> => {
    await perform('serviceRegister', {
      aid,
      services: listOf(names),
      ...(brief === '' ? {} : { brief }),
      ...(tags === '' ? {} : { tags: listOf(tags) }),
    });
    setNames('');
    setBrief('');
    setTags('');
  };
  return (
    <div class="columns">
      <Section title={t('agent.offers')} note={t('services.count', { n: services.length })}>
        {services.length === 0 ? (
          <Empty text={t('services.none')} />
        ) : (
          <ul class="rows">
            {services.map((service) => (
              <li key={service}>
                <code class="grow">{service}</code>
                <button
                  type="button"
                  aria-label={t('services.remove', { service })}
                  onClick={() =>
                    actLater(() => perform('serviceUnregister', { aid, service }), t('services.removing', { service }))
                  }
                >
                  {t('remove')}
                </button>
              </li>
            ))}
          </ul>
        )}
      </Section>
      <Section title={t('services.offer')}>
        <form
          class="acts"
          onSubmit={(event) => {
            event.preventDefault();
            act(offer, t('published'));
          }}
        >
          <Field label={t('services.names')} value={names} onInput={setNames} placeholder="lang.translate" />
          <Field label={t('services.brief')} value={brief} onInput={setBrief} />
          <Field label={t('services.tags')} value={tags} onInput={setTags} />
          <button type="submit" class="main" disabled={listOf(names).length === 0}>
            {t('services.offer')}
          </button>
        </form>
      </Section>
    </div>
  );
}
