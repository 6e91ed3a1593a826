/** The services of an agent: names, and for each a description, tags and metadata. */
import { useState } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { listOf } from '../../lib/lists.ts';
import { here } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Answer, Empty, Field, InputError, Section } from '../../parts/basics.tsx';
import { Form } from '../../parts/form.tsx';
import { actLater, Dialog, openDialog } from '../../parts/overlay.tsx';

type Service = Output<'servicesList'>['services'][number];

/** Metadata as text in a field: a JSON object, or empty. */
function metaText(meta: Service['meta'] | undefined): string {
  return meta === undefined || Object.keys(meta).length === 0 ? '' : JSON.stringify(meta, null, 2);
}

/** The object of the text in a field. Null if it is invalid. */
function metaOf(text: string): Readonly<Record<string, unknown>> | null {
  if (text.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}

interface OfferProps {
  readonly aid: string;
  /** The service to change. Absent for new ones. */
  readonly service?: Service;
  readonly done: () => void;
  readonly cancel?: (() => void) | undefined;
}

function Offer({ aid, service, done, cancel }: OfferProps) {
  const [names, setNames] = useState(service?.service ?? '');
  const [brief, setBrief] = useState(service?.brief ?? '');
  const [tags, setTags] = useState((service?.tags ?? []).join(', '));
  const [meta, setMeta] = useState(metaText(service?.meta));
  const object = metaOf(meta);
  const offer = async (): Promise<void> => {
    if (object === null) return;
    await perform('serviceRegister', {
      aid,
      services: listOf(names),
      ...(service === undefined ? {} : { name: service.name, protocols: service.protocols, ttl: service.ttl }),
      brief,
      tags: listOf(tags),
      meta: object,
    });
  };
  return (
    <Form
      fields={['services', 'brief', 'tags', 'meta']}
      verb={t(service === undefined ? 'services.offer' : 'profile.save')}
      run={offer}
      done={t('published')}
      close={done}
      cancel={cancel}
      isReady={listOf(names).length > 0 && object !== null}
    >
      {service === undefined && (
        <Field
          label={t('services.names')}
          name="services"
          value={names}
          onInput={setNames}
          placeholder="lang.translate"
        />
      )}
      <Field label={t('services.brief')} name="brief" value={brief} onInput={setBrief} />
      <Field label={t('services.tags')} name="tags" value={tags} onInput={setTags} />
      <Field label={t('services.meta')} name="meta" type="lines" value={meta} onInput={setMeta} />
      <InputError text={object === null ? t('services.meta.bad') : ''} />
    </Form>
  );
}

function Row({ aid, service }: { readonly aid: string; readonly service: Service }) {
  const { service: name, brief, tags, replicas } = service;
  const change = (): void =>
    openDialog((close) => (
      <Dialog title={name} close={close}>
        <Offer aid={aid} service={service} done={close} cancel={close} />
      </Dialog>
    ));
  return (
    <li>
      <span class="grow">
        <code>
          <b>{name}</b>
        </code>{' '}
        <small>{t('agent.replicas', { n: replicas })}</small>
        {brief !== '' && <p>{brief}</p>}
        {tags.map((tag) => (
          <span key={tag} class="chip">
            {tag}
          </span>
        ))}
      </span>
      <button type="button" aria-label={`${t('change')} ${name}`} onClick={change}>
        {t('change')}
      </button>
      <button
        type="button"
        aria-label={t('services.remove', { service: name })}
        onClick={() => {
          const { base } = here();
          actLater(
            () => perform('serviceUnregister', { aid, service: name }, base),
            t('services.removing', { service: name }),
          );
        }}
      >
        {t('remove')}
      </button>
    </li>
  );
}

export function Services({ agent: { aid, services: names } }: { readonly agent: Output<'agentGet'> }) {
  const known = useQuery('servicesList', { aid });
  const [made, setMade] = useState(0);
  return (
    <div class="columns">
      <Section title={t('agent.offers')} note={t('services.count', { n: names.length })}>
        <Answer of={known}>
          {({ services }) =>
            services.length === 0 ? (
              <Empty text={t('services.none')} />
            ) : (
              <ul class="rows">
                {services.map((service) => (
                  <Row key={service.service} aid={aid} service={service} />
                ))}
              </ul>
            )
          }
        </Answer>
      </Section>
      <Section title={t('services.offer')}>
        <Offer key={made} aid={aid} done={() => setMade(made + 1)} />
      </Section>
    </div>
  );
}
