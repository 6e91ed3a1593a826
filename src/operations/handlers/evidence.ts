/** Handlers of the evidence operations. */
import type { EvidenceSetting } from '../../capabilities/agents/evidence-setting.ts';
import type { evidenceOperations } from '../evidence.ts';
import type { Handlers } from '../operation.ts';

export interface EvidenceHandlerDependencies {
  readonly evidence: Pick<EvidenceSetting, 'get' | 'set'>;
}

export function evidenceHandlers({ evidence }: EvidenceHandlerDependencies): Handlers<typeof evidenceOperations> {
  return {
    evidenceGet: ({ aid }) => ({ aid, enabled: evidence.get(aid) }),
    evidenceSet: ({ aid, enabled }) => {
      evidence.set(aid, enabled);
      return { aid, enabled: evidence.get(aid) };
    },
  };
}
