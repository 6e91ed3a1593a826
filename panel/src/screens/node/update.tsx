/** Updates of svcd itself. */
import { t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Answer, Section, State, When } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';

const UPDATE_MS = 10_000;

export function Update() {
  const update = useQuery('updateStatus', {}, UPDATE_MS);
  return (
    <Section title={t('node.update')}>
      <Answer of={update}>
        {({
          current_version,
          latest_version,
          update_available,
          state,
          last_check_at,
          managed,
          last_error,
          warning,
        }) => (
          <>
            <dl class="pairs">
              <dt>{t('node.version')}</dt>
              <dd>{current_version}</dd>
              <dt>{t('update.latest')}</dt>
              <dd>{latest_version ?? t('unknown')}</dd>
              <dt>{t('state')}</dt>
              <dd>
                <State
                  tone={state === 'failed' || state === 'rolled_back' ? 'bad' : update_available ? 'warn' : 'good'}
                >
                  {t(`update.${state}`)}
                </State>
              </dd>
              <dt>{t('update.checked')}</dt>
              <dd>{last_check_at === null ? t('never') : <When at={last_check_at} ago />}</dd>
            </dl>
            {[warning, last_error].map(
              (text) =>
                text !== undefined && (
                  <p key={text} class="soft" lang="en">
                    {text}
                  </p>
                ),
            )}
            <div class="acts">
              {warning === undefined && (
                <button type="button" onClick={() => act(() => perform('updateStatus', { check: true }))}>
                  {t('update.check')}
                </button>
              )}
              {update_available && managed && (
                <button
                  type="button"
                  class="main"
                  onClick={() =>
                    confirm({
                      title: t('update.apply'),
                      text: t('update.apply.what'),
                      verb: t('update.apply'),
                      run: () => perform('updateApply', {}),
                    })
                  }
                >
                  {t('update.apply')}
                </button>
              )}
            </div>
          </>
        )}
      </Answer>
    </Section>
  );
}
