"""A verdict as JSON, without what differs from run to run: ids, times, and where on this machine an agent is."""

import json
import re

ID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')
TIME = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)')
AGENT = re.compile(r'(?:http://)?127\.0\.0\.1:\d+')


def masked(verdict):
    text = json.dumps(verdict, ensure_ascii=False)
    return AGENT.sub('<agent>', TIME.sub('<time>', ID.sub('<id>', text)))
