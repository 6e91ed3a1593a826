/** Texts of the daemon that the panel translates by key. */
import type { FindingCode } from '../../../src/foundation/domain/findings.ts';
import type { Text } from '../lib/text.ts';

/** The descriptions of the settings. */
export type SettingWords = Readonly<Record<`setting.${string}`, string>>;

/** The findings of the doctor: what it found, and how to fix it. */
export type FindingWords = Readonly<
  Record<`finding.${FindingCode}`, Text> & Partial<Record<`hint.${FindingCode}`, string>>
>;
