/** The profile of an agent. */
import { useState } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { listOf } from '../../lib/lists.ts';
import { perform } from '../../lib/query.ts';
import { Field, Section } from '../../parts/basics.tsx';
import { Form } from '../../parts/form.tsx';
import { confirm } from '../../parts/overlay.tsx';

export function Profile({ agent: { aid, profile } }: { readonly agent: Output<'agentGet'> }) {
  const [name, setName] = useState(profile?.name ?? '');
  const [brief, setBrief] = useState(profile?.brief ?? '');
  const [skills, setSkills] = useState((profile?.skills ?? []).join(', '));
  const [protocols, setProtocols] = useState((profile?.protocols ?? []).join(', '));
  const save = () =>
    perform('profileSet', {
      ...profile,
      aid,
      name,
      brief,
      skills: skills
        .split(',')
        .map((skill) => skill.trim())
        .filter((skill) => skill !== ''),
      protocols: listOf(protocols),
    });
  return (
    <Section title={t('tab.profile')} note={t('profile.public')}>
      <p class="empty">{t('profile.what')}</p>
      <Form
        class="one"
        fields={['name', 'brief', 'skills', 'protocols']}
        verb={t('profile.save')}
        run={save}
        done={t('published')}
        more={
          profile !== undefined && (
            <button
              type="button"
              class="danger"
              onClick={() =>
                confirm({
                  title: t('profile.delete'),
                  text: t('profile.delete.what'),
                  verb: t('profile.delete'),
                  run: () => perform('profileDelete', { aid }),
                })
              }
            >
              {t('profile.delete')}
            </button>
          )
        }
      >
        <Field label={t('profile.name')} name="name" value={name} onInput={setName} />
        <Field label={t('profile.brief')} name="brief" value={brief} onInput={setBrief} />
        <Field label={t('profile.skills')} name="skills" value={skills} onInput={setSkills} />
        <Field label={t('profile.protocols')} name="protocols" value={protocols} onInput={setProtocols} />
      </Form>
    </Section>
  );
}
