package cluster

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"heliograph/internal/kafka"
)

// DescribeACLs reads the bindings on topics, literal and prefixed.
func (c *Client) DescribeACLs(ctx context.Context) ([]kafka.ACL, error) {
	const op = "read ACLs"
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType = kmsg.ACLResourceTypeTopic
	req.ResourcePatternType = kmsg.ACLResourcePatternTypeAny
	req.Operation = kmsg.ACLOperationAny
	req.PermissionType = kmsg.ACLPermissionTypeAny
	resp, err := req.RequestWith(ctx, c.kgo)
	if err != nil {
		return nil, c.fail(op, "", err)
	}
	if err := c.answered(op, "", resp.ErrorCode, resp.ErrorMessage); err != nil {
		return nil, err
	}
	var acls []kafka.ACL
	for i := range resp.Resources {
		r := &resp.Resources[i]
		for j := range r.ACLs {
			a := &r.ACLs[j]
			acls = append(acls, kafka.ACL{
				ResourceType: r.ResourceType.String(),
				ResourceName: r.ResourceName,
				PatternType:  r.ResourcePatternType.String(),
				Principal:    a.Principal,
				Host:         a.Host,
				Operation:    a.Operation.String(),
				Permission:   a.PermissionType.String(),
			})
		}
	}
	return acls, nil
}

// CreateACLs adds the bindings. The errors that come back are one per binding,
// in its place, nil where it worked; a binding that exists already works.
func (c *Client) CreateACLs(ctx context.Context, acls []kafka.ACL) []error {
	const op = "create ACL"
	out := make([]error, len(acls))
	req := kmsg.NewPtrCreateACLsRequest()
	var sent []int
	for i, acl := range acls {
		creation, err := aclCreation(acl)
		if err != nil {
			out[i] = c.fail(op, acl.ResourceName, err)
			continue
		}
		req.Creations = append(req.Creations, creation)
		sent = append(sent, i)
	}
	if len(sent) == 0 {
		return out
	}
	resp, err := req.RequestWith(ctx, c.kgo)
	for n, i := range sent {
		name := acls[i].ResourceName
		switch {
		case err != nil:
			out[i] = c.fail(op, name, err)
		case n >= len(resp.Results):
			out[i] = c.fail(op, name, errLeftOut)
		default:
			out[i] = c.answered(op, name, resp.Results[n].ErrorCode, resp.Results[n].ErrorMessage)
		}
	}
	return out
}

// DeleteACLs removes exactly the named bindings. The errors that come back are
// one per binding, in its place, nil where it worked; removed says of each
// whether it was there.
func (c *Client) DeleteACLs(ctx context.Context, acls []kafka.ACL) (removed []bool, errs []error) {
	const op = "delete ACL"
	removed, errs = make([]bool, len(acls)), make([]error, len(acls))
	req := kmsg.NewPtrDeleteACLsRequest()
	var sent []int
	for i, acl := range acls {
		creation, err := aclCreation(acl)
		if err != nil {
			errs[i] = c.fail(op, acl.ResourceName, err)
			continue
		}
		filter := kmsg.NewDeleteACLsRequestFilter()
		filter.ResourceType, filter.ResourcePatternType = creation.ResourceType, creation.ResourcePatternType
		filter.ResourceName, filter.Principal, filter.Host = new(acl.ResourceName), new(acl.Principal), new(acl.Host)
		filter.Operation, filter.PermissionType = creation.Operation, creation.PermissionType
		req.Filters = append(req.Filters, filter)
		sent = append(sent, i)
	}
	if len(sent) == 0 {
		return removed, errs
	}
	resp, err := req.RequestWith(ctx, c.kgo)
	for n, i := range sent {
		name := acls[i].ResourceName
		switch {
		case err != nil:
			errs[i] = c.fail(op, name, err)
		case n >= len(resp.Results):
			errs[i] = c.fail(op, name, errLeftOut)
		default:
			r := &resp.Results[n]
			removed[i] = len(r.MatchingACLs) > 0
			errs[i] = c.answered(op, name, r.ErrorCode, r.ErrorMessage)
			for j := range r.MatchingACLs {
				if m := &r.MatchingACLs[j]; errs[i] == nil {
					errs[i] = c.answered(op, name, m.ErrorCode, m.ErrorMessage)
				}
			}
		}
	}
	return removed, errs
}

func aclCreation(acl kafka.ACL) (kmsg.CreateACLsRequestCreation, error) {
	out := kmsg.NewCreateACLsRequestCreation()
	out.ResourceName, out.Principal, out.Host = acl.ResourceName, acl.Principal, acl.Host
	var errs [4]error
	out.ResourceType, errs[0] = kmsg.ParseACLResourceType(acl.ResourceType)
	out.ResourcePatternType, errs[1] = kmsg.ParseACLResourcePatternType(acl.PatternType)
	out.Operation, errs[2] = kmsg.ParseACLOperation(acl.Operation)
	out.PermissionType, errs[3] = kmsg.ParseACLPermissionType(acl.Permission)
	return out, errors.Join(errs[:]...)
}
