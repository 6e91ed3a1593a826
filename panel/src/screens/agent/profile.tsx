/** The profile of an agent. */
import { useState } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { listOf } from '../../lib/lists.ts';
import { perform } from '../../lib/query.ts';
import { Field, Section } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';

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
      <form
        onSubmit={(event) => {
          event.preventDefault();
          act(save, t('published'));
        }}
      >
        <p class="empty">{t('profile.what')}</p>
        <Field label={t('profile.name')} value={name} onInput={setName} />
        <Field label={t('profile.brief')} value={brief} onInput={setBrief} />
        <Field label={t('profile.skills')} value={skills} onInput={setSkills} />
        <Field label={t('profile.protocols')} value={protocols} onInput={setProtocols} />
        <div class="acts">
          <button type="submit" class="main">
            {t('profile.save')}
          </button>
          {profile !== undefined && (
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
          )}
        </div>
      </form>
    </Section>
  );
}
