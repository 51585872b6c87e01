"""The calls of OVHcloud's guide with its own Python client.

guide.py ENDPOINT PROJECT SOURCE_ALIAS TARGET_ALIAS link     steps 1 and 2; prints what was made
guide.py ENDPOINT PROJECT SOURCE_ALIAS TARGET_ALIAS manage   step 4, and what is refused
"""

import json
import sys

import ovh
from ovh.exceptions import (
    BadParametersError,
    InvalidCredential,
    InvalidKey,
    ResourceConflictError,
    ResourceNotFoundError,
)

endpoint, project, source_alias, target_alias, phase = sys.argv[1:]
ovh.client.ENDPOINTS["local"] = endpoint


def login(key="appkey", secret="appsecret", consumer="opskey"):
    return ovh.Client(endpoint="local", application_key=key, application_secret=secret, consumer_key=consumer)


def refused(error, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except error as e:
        assert e.query_id, "a refusal without a query id: %s" % e
        return str(e)
    raise AssertionError("%s was not raised" % error.__name__)


client = login()
database = "/cloud/project/%s/database" % project
mirror = "%s/kafkaMirrorMaker/%s" % (database, client.get(database + "/kafkaMirrorMaker")[0])
kafka = {client.get("%s/kafka/%s" % (database, i))["description"]: i for i in client.get(database + "/kafka")}


def integrations():
    all = [client.get("%s/integration/%s" % (mirror, i)) for i in client.get(mirror + "/integration")]
    return {i["sourceServiceId"]: i["id"] for i in all}


if phase == "link":
    service = mirror.rsplit("/", 1)[1]
    ids = []
    for alias in (source_alias, target_alias):
        body = {"type": "kafkaMirrorMaker", "sourceServiceId": kafka[alias], "destinationServiceId": service}
        made = client.post(mirror + "/integration", **body)
        assert made["status"] == "READY", made
        refused(ResourceConflictError, client.post, mirror + "/integration", **body)
        ids.append(made["id"])
    body = {
        "sourceIntegration": ids[0],
        "targetIntegration": ids[1],
        "topics": ["inventory"],
        "syncGroupOffsets": True,
        "syncInterval": 60,
        "emitHeartbeats": True,
        "enabled": True,
    }
    answer = client.post(mirror + "/replication", **body)
    want = dict(
        body,
        id=answer["id"],
        replicationPolicyClass="org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
        topicExcludeList=[],
    )
    assert answer == want, answer
    refused(ResourceConflictError, client.post, mirror + "/replication", **body)
    print(json.dumps(answer))
else:
    (replication,) = client.get(mirror + "/replication")
    path = "%s/replication/%s" % (mirror, replication)
    answer = client.get(path)
    answer["syncInterval"] = 5
    assert client.put(path, **answer) == answer
    assert "syncInterval" in refused(BadParametersError, client.put, path, enabled=True, syncInterval="often")
    for integration in client.get(mirror + "/integration"):
        refused(ResourceConflictError, client.delete, "%s/integration/%s" % (mirror, integration))
    assert client.delete(path) is None
    refused(ResourceNotFoundError, client.get, path)
    for integration in client.get(mirror + "/integration"):
        assert client.delete("%s/integration/%s" % (mirror, integration)) is None
    assert client.get(mirror + "/integration") == []
    refused(BadParametersError, login(secret="wrong").get, database + "/kafka")
    refused(InvalidKey, login(key="nobody").get, database + "/kafka")
    refused(InvalidCredential, login(consumer="nobody").get, database + "/kafka")
