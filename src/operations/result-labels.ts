/**
 * Labels in results. A result that names agents has one member `labels`: a map from each AID in it that has a label to
 * that label. One map for all results keeps their other members as they are.
 */
import { type Static, Type } from 'typebox';
import { AID_FORMAT } from '../foundation/domain/agents.ts';
import { isObject, memberOf } from '../foundation/json.ts';
import type { BoundOperation, Declaration } from './operation.ts';

/** The member `labels` of a result. */
export const ResultLabels = Type.Record(Type.String(), Type.String(), {
  description: 'Your labels for agents in this result, by AID. Absent without labels.',
});
type ResultLabels = Static<typeof ResultLabels>;

const AID_IN_SCHEMA = JSON.stringify({ format: AID_FORMAT }).slice(1, -1);

/** True if results of this operation can have the member `labels`. */
export function hasLabels({ output, isDocument }: Declaration): boolean {
  const members = memberOf(output, 'properties');
  if (isDocument === true || !isObject(members)) return false;
  return !Object.hasOwn(members, 'labels') && JSON.stringify(output).includes(AID_IN_SCHEMA);
}

/**
 * The operations, whose results also contain labels.
 * @param labelsIn the labels of the agents in a result
 */
export function addLabels(
  operations: readonly BoundOperation[],
  labelsIn: (result: unknown) => ResultLabels,
): readonly BoundOperation[] {
  return operations.map((operation) => {
    const { declaration } = operation;
    if (!hasLabels(declaration)) return operation;
    return {
      declaration,
      async run(input, context) {
        const output = await operation.run(input, context);
        if (!isObject(output)) return output;
        const labels = labelsIn(output);
        return Object.keys(labels).length === 0 ? output : { ...output, labels };
      },
    };
  });
}
